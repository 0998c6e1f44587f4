"""URLs in expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang.costs import UNBOUNDED, UNKNOWN, Range
from moorage.cel.library import equality_estimate, urls
from moorage.cel.library.urls import URLError, parse_request_uri, parse_url
from tests.cel.kubernetes import (
    answer,
    argument,
    assert_answers_as_recorded,
    assert_declared_as_recorded,
    error_of,
    estimate,
    value_of,
)

TEXTS = st.lists(
    st.sampled_from(
        (
            *("http", "https", ":", "//", "/", "?", "#", "@", "[", "]", "%", "%41", "%ff", "%25"),
            *("a", "ä", "1", "::1", "*", ".", "&", "=", ";", "+", " ", "~", "!", "<", '"', "^"),
        )
    ),
    max_size=9,
).map("".join)


def test_functions_are_declared_as_kubernetes_declares_them() -> None:
    assert_declared_as_recorded(urls.library())


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"url"}, at_least=20)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("url('HTTPS://u:p@Ex.com:8080/p').getScheme()", "https"),
        ("url('HTTPS://u:p@Ex.com:8080/p').getHost()", "Ex.com:8080"),
        ("url('HTTPS://u:p@Ex.com:8080/p').getHostname()", "Ex.com"),
        ("url('HTTPS://u:p@Ex.com:8080/p').getPort()", "8080"),
        ("url('https://[::1%25eth0]:80').getHost()", "[::1%eth0]:80"),
        ("url('https://[::1]').getHostname()", "::1"),
        ("url('https://example.com:/').getPort()", ""),
        ("url('https://x/a%2Fb').getEscapedPath()", "/a%2Fb"),
        ("url('https://x/a b%2Fc').getEscapedPath()", "/a%20b/c"),
        ("url('https://x/a%20b').getEscapedPath()", "/a%20b"),
        ("url('mailto:a@b').getEscapedPath()", ""),
        ("url('https://x?a=1&a=2').getQuery()", {"a": ["1", "2"]}),
        ("isURL('/abs')", True),
        ("isURL('rel')", False),
        ("isURL('*')", True),
        ("url('http://x/#f') == url('http://x/')", False),
        ("url('HTTP://x') == url('http://x')", True),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_query_parameters_that_are_malformed_are_left_out() -> None:
    query = "a=1&a=2&b&x;c=3&d=%zz&=e&f=g+h%20i"
    assert parse_url(f"https://x?{query}").parameters() == {
        "a": ["1", "2"],
        "b": [""],
        "": ["e"],
        "f": ["g h i"],
    }


def test_a_query_of_too_many_parameters_has_none() -> None:
    assert len(parse_url("https://x?" + "&".join(map(str, range(10_000)))).parameters()) == 10_000
    assert parse_url("https://x?" + "&" * 10_000).parameters() == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty url"),
        ("rel", "invalid URI for request"),
        (":x", "missing protocol scheme"),
        ("http://x/\x7f", "net/url: invalid control character in URL"),
        ("http://x:port", 'invalid port ":port" after host'),
        ("http://a:1:2", 'invalid port ":1:2" after host'),
        ("http://a[b", "invalid IP-literal"),
        ("http://[::1", "missing ']' in host"),
        ("http://[1.2.3.4]", "invalid IP-literal"),
        ("http://[x]", 'invalid host: ParseAddr("x"): unable to parse IP'),
        ("http://[::1]80", 'invalid port "80" after host'),
        ("http://a b/", 'invalid character " " in host name'),
        ("http://%41/", 'invalid URL escape "%41"'),
        ("http://x/%zz", 'invalid URL escape "%zz"'),
        ("http://x/%", 'invalid URL escape "%"'),
        ("http://x/%1ä", 'invalid URL escape "%1\\xc3"'),
        ("http://us er@x", "net/url: invalid userinfo"),
    ],
)
def test_what_is_wrong_with_a_url(text: str, message: str) -> None:
    with pytest.raises(URLError) as refusal:
        parse_request_uri(text)
    shown = text.replace("\x7f", "\\x7f")
    assert str(refusal.value) == f'parse "{shown}": {message}'


def test_colons_in_hosts_are_for_other_schemes_than_http() -> None:
    assert parse_request_uri("postgres://a:1,b:2/db").host == "a:1,b:2"


def test_a_fragment_is_looked_at_last() -> None:
    wrong = "URL parse error during conversion from string: parse "
    assert error_of("url('http://x/?q#%zz')") == wrong + (
        '"http://x/?q#%zz": invalid URL escape "%zz"'
    )
    assert error_of("url('//x:y#f')") == wrong + '"//x:y": invalid port ":y" after host'
    assert error_of("url('http://x/ #%zz')") == wrong + (
        '"http://x/ #%zz": invalid URL escape "%zz"'
    )


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("http://", "http:"),
        ("http:///p", "http:///p"),
        ("http:/p", "http:/p"),
        ("http:////p", "http:////p"),
        ("http:%2F", "http:%2F"),
        ("file:/%2F/p", "file:/%2F/p"),
        ("HTTP://u:p%40@X/ä?#", "http://u:p%40@X/%C3%A4?"),
        ("http://ä/", "http://%C3%A4/"),
        ("http://x?", "http://x?"),
        ("/p?q#f^", "/p?q#f%5E"),
        ("a%3Ab", "a%3Ab"),
        ("*", "*"),
    ],
)
def test_a_url_is_written_again(text: str, again: str) -> None:
    assert str(parse_url(text)) == again


@given(TEXTS)
def test_what_is_written_again_stays(text: str) -> None:
    try:
        url = parse_request_uri(text)
    except URLError:
        return
    again = parse_request_uri(str(url)) if str(url) else url
    assert again.host == url.host
    assert again.parameters() == url.parameters()


def test_reading_costs_by_length_and_asking_does_not() -> None:
    assert answer("url('https://example.com')").cost == 2
    assert answer("isURL('https://example.com')").cost == 1
    assert answer("url('https://example.com').getQuery()").cost == 3
    assert answer("url('https://x') == url('https://x')").cost == 3


def test_estimates_go_by_length() -> None:
    assert estimate("url", "string_to_url", argument(0, 64)) == Range(0, 7)
    url = argument(19, type_=urls.URL_TYPE)
    assert equality_estimate(url, url) == Range(1, 2)
    assert equality_estimate(url, argument(0, UNBOUNDED, urls.URL_TYPE)) == Range(
        1, 1844674407370955264
    )
    assert equality_estimate(url, argument(UNKNOWN.low)) is None
