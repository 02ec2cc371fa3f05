# SPDX-License-Identifier: MIT
# holdfast.bash - completes the words of holdfast in bash. Names of locks are those that are held now.

# _holdfast_names WORD [--semaphore]: asks the server, and has no patience with it. Anybody may have chosen the names: what could mean
# anything to a shell, or as an option, is not offered.
_holdfast_names()
{
    local name
    while read -r name; do
        [[ $name == "$1"* ]] && COMPREPLY+=("$name")
    done < <(timeout 1 holdfast ls --json "${@:2}" 2>/dev/null |
        sed -n 's|^[[ ]{"name":"\([A-Za-z0-9_./:@%+][A-Za-z0-9_./:@%+-]*\)",.*|\1|p')
}

# _holdfast_place WORD...: where the next word of `run` or `lead` stands: 0 options or the NAME, 1 the command, 2 what belongs to it.
_holdfast_place()
{
    local named=0
    for (( ; $#; )); do
        case $1 in
        --) ((named)) && echo $(($# > 1 ? 2 : 1)) && return ;;
        -w | --wait | --timeout | -p | --permits | -E | --conflict-exit-code | --lease | --grace | --label | --url | -c | --command)
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
    # Names have colons and more at which bash cuts words: what stands in the line without a blank between is one.
    local IFS=$' \t\n' options="--url --help" place=0 words=() word last cut part gap begin=0 at=0 i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        part=${COMP_WORDS[i]} gap=${COMP_LINE:at}
        gap=${gap%%"$part"*}
        if [[ -z $part ]]; then
            words+=("") begin=$COMP_POINT
        elif [[ -n $gap || $i == 0 ]]; then
            words+=("$part") begin=$((at + ${#gap}))
        else
            words[-1]+=$part
        fi
        at=$((at + ${#gap} + ${#part}))
    done
    word=${COMP_LINE:begin:COMP_POINT-begin} last=${words[-2]}
    cut=${word%"$2"} # what bash keeps of it
    COMPREPLY=()
    if ((${#words[@]} == 2)); then
        COMPREPLY=($(compgen -W "run lead watch ls show break doctor help --version --help" -- "$word"))
        return
    fi
    case ${words[1]} in
    run)
        options="--nonblock --wait --timeout --conflict-exit-code --command --shared --permits --lease --grace --label --keep-url --verbose $options"
        place=$(_holdfast_place "${words[@]:2:${#words[@]}-3}")
        ;;
    lead)
        options="--command --lease --grace --label --keep-url --verbose $options"
        place=$(_holdfast_place "${words[@]:2:${#words[@]}-3}")
        ;;
    ls | show) options="--json --semaphore $options" ;;
    watch) options="--json $options" ;;
    doctor) options="--acl --json $options" ;;
    break) options="--force --semaphore $options" ;;
    help)
        COMPREPLY=($(compgen -W "run lead watch ls show break doctor" -- "$word"))
        return
        ;;
    *) return ;;
    esac
    case $last in
    -w | --wait | --timeout | -p | --permits | -E | --conflict-exit-code | --lease | --grace | --label | --url | -c | --command) return ;;
    esac
    ((place == 2)) && return # names of files, which bash quotes
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif ((place == 1)); then
        COMPREPLY=($(compgen -c -- "$word"))
    elif [[ ${words[1]} != doctor ]]; then
        [[ " ${words[*]} " == *" --semaphore "* ]] && last=--semaphore || last=
        _holdfast_names "$word" $last
        COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    fi
}
complete -o default -F _holdfast holdfast
