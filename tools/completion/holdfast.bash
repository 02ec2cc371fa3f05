# SPDX-License-Identifier: MIT
# holdfast.bash - completes the words of holdfast in bash. Names of locks are those that are held now.

# _holdfast_names WORD: asks the server, and has no patience with it. Anybody may have chosen the names: what could mean
# anything to a shell is not offered.
_holdfast_names()
{
    local name
    while read -r name; do
        [[ $name == "$1"* ]] && COMPREPLY+=("$name")
    done < <(timeout 1 holdfast ls --json 2>/dev/null | sed -n 's|^[[ ]{"name":"\([A-Za-z0-9_./:@%+-]*\)",.*|\1|p')
}

# Where the words of `run` are: 0 options or the NAME, 1 the command, 2 what belongs to it.
_holdfast_place()
{
    local i named=0
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) ((named)) && echo $((i + 1 < COMP_CWORD ? 2 : 1)) && return ;;
        -w | --wait | --timeout | -E | --conflict-exit-code | --lease | --grace | --label | --url | -c | --command) ((i++)) ;;
        -*) ;;
        *) ((named)) && echo 2 && return
            named=1 ;;
        esac
    done
    echo $((named ? 1 : 0))
}

_holdfast()
{
    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} options="--url --help" place=0
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run ls show break doctor help --version --help" -- "$word"))
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        options="--nonblock --wait --timeout --conflict-exit-code --command --lease --grace --label --keep-url --verbose $options"
        place=$(_holdfast_place)
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
    elif [[ ${COMP_WORDS[1]} != doctor ]]; then
        _holdfast_names "$word"
    fi
}
complete -o default -F _holdfast holdfast
