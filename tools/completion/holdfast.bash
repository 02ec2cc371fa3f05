# SPDX-License-Identifier: MIT
# holdfast.bash - completes the words of holdfast in bash. Names of locks are those that are held now.

# _holdfast_names WORD: asks the server, and has no patience with it. Anybody may have chosen the names: what could mean
# anything to a shell, or as an option, is not offered.
_holdfast_names()
{
    local name
    while read -r name; do
        [[ $name == "$1"* ]] && COMPREPLY+=("$name")
    done < <(timeout 1 holdfast ls --json 2>/dev/null |
        sed -n 's|^[[ ]{"name":"\([A-Za-z0-9_./:@%+][A-Za-z0-9_./:@%+-]*\)",.*|\1|p')
}

# _holdfast_place WORD...: where the next word of `run` stands: 0 options or the NAME, 1 the command, 2 what belongs to it.
_holdfast_place()
{
    local named=0
    for (( ; $#; )); do
        case $1 in
        --) ((named)) && echo $(($# > 1 ? 2 : 1)) && return ;;
        -w | --wait | --timeout | -E | --conflict-exit-code | --lease | --grace | --label | --url | -c | --command)
            [ $# -lt 2 ] || shift ;;
        -*) ;;
        *) ((named)) && echo 2 && return
            named=1 ;;
        esac
        shift
    done
    echo "$named"
}

_holdfast()
{
    # Names have colons, at which bash would cut words: the line is cut at blanks instead.
    local line=${COMP_LINE:0:COMP_POINT} options="--url --help" place=0 words word last cut
    read -ra words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    word=${words[-1]} last=${words[-2]}
    cut=${word%"${COMP_WORDS[COMP_CWORD]}"} # what bash keeps of it
    [[ $word != *:* ]] && cut=
    COMPREPLY=()
    if ((${#words[@]} == 2)); then
        COMPREPLY=($(compgen -W "run ls show break doctor help --version --help" -- "$word"))
        return
    fi
    case ${words[1]} in
    run)
        options="--nonblock --wait --timeout --conflict-exit-code --command --lease --grace --label --keep-url --verbose $options"
        place=$(_holdfast_place "${words[@]:2:${#words[@]}-3}")
        ;;
    ls | show | doctor) options="--json $options" ;;
    break) ;;
    help)
        COMPREPLY=($(compgen -W "run ls show break doctor" -- "$word"))
        return
        ;;
    *) return ;;
    esac
    case $last in
    -w | --wait | --timeout | -E | --conflict-exit-code | --lease | --grace | --label | --url | -c | --command) return ;;
    esac
    if ((place == 2)); then
        COMPREPLY=($(compgen -f -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif ((place == 1)); then
        COMPREPLY=($(compgen -c -- "$word"))
    elif [[ ${words[1]} != doctor ]]; then
        _holdfast_names "$word"
        COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    fi
}
complete -o default -F _holdfast holdfast
