# A name may have anything in it: what is offered is quoted as the line wants it, or it would be run when the line is entered.
_sessions_tui() {
    local raw=${COMP_WORDS[COMP_CWORD]} typed=$2 quote= found quoted space=true
    local -a words=("${COMP_WORDS[@]}")
    COMPREPLY=()
    case $raw in
        [\'\"]*) quote=${raw:0:1} raw=${raw:1} ;;
    esac
    # a word that is quoted in parts is left to whoever began it
    case $raw in
        *[\'\"\`]*) return ;;
    esac
    # backslashes go; nothing else of what was typed is looked at
    [[ $quote == \' ]] || IFS= read typed <<< "$2" || :
    words[COMP_CWORD]=$typed
    compopt +o nospace 2> /dev/null && space=false
    while IFS= read -r found || [[ -n $found ]]; do
        case $quote in
            '') printf -v quoted %q "$found" ;;
            \') quoted=${found//\'/\'\\\'\'} ;;
            # in here ! is the shell's even behind a backslash
            \") quoted=${found//\\/\\\\} quoted=${quoted//\"/\\\"} quoted=${quoted//\$/\\\$} quoted=${quoted//\`/\\\`} quoted=${quoted//!/\"\\!\"} ;;
        esac
        COMPREPLY+=("$quoted")
    done < <(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$COMP_CWORD _CLAP_COMPLETE_COMP_TYPE=$COMP_TYPE _CLAP_COMPLETE_SPACE=$space \
        SESSIONS_COMPLETE=bash sessions-tui -- "${words[@]}" 2> /dev/null)
    if [[ $space == false && ${COMPREPLY-} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
if [[ ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 || ${BASH_VERSINFO[0]} -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _sessions_tui sessions-tui
else
    complete -o nospace -o bashdefault -F _sessions_tui sessions-tui
fi
