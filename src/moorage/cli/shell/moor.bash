# Completion of moor in bash 4.4 or newer: source <(moor completion bash)

_moor() {
    local program="${COMP_WORDS[0]/#\~/$HOME}" directive
    local -a answer
    type -P "$program" >/dev/null || program=moor
    COMPREPLY=()
    mapfile -t answer < <(
        "$program" __complete --bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null
    )
    (( ${#answer[@]} )) || return
    directive="${answer[-1]#:}"
    unset 'answer[-1]'
    COMPREPLY=("${answer[@]%%$'\t'*}")
    if (( directive & 2 )); then compopt -o nospace 2>/dev/null; fi
    if (( directive & 16 )); then
        compopt -o dirnames 2>/dev/null
    elif (( ! (directive & 4) )); then
        compopt -o default 2>/dev/null
    fi
}

complete -F _moor moor
