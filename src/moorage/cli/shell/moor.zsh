#compdef moor
# Completion of moor in zsh: moor completion zsh > "${fpath[1]}/_moor"

_moor() {
    local -a answer values space
    local directive line
    answer=("${(@f)$("${(Q)words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    directive="${answer[-1]#:}"
    [[ "$directive" == <-> ]] || return 1
    for line in "${(@)answer[1,-2]}"; do
        values+=("${${line%%$'\t'*}//:/\\:}${${(M)line%%$'\t'*}:+:${line#*$'\t'}}")
    done
    (( directive & 2 )) && space=(-S '')
    if (( ${#values} )); then
        _describe -t values 'moor' values "${space[@]}"
    elif (( directive & 16 )); then
        _files -/
    elif (( ! (directive & 4) )); then
        _files
    fi
}

if [[ "${funcstack[1]}" == _moor ]]; then
    _moor "$@"
else
    compdef _moor moor
fi
