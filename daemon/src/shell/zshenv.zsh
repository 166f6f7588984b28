# Shell integration of sessions-tui for zsh: tells where prompts, commands and their ends are (OSC 133) and which folder it is in (OSC 7).
# Read because ZDOTDIR leads here; from here on everything is the user's own again.
if [[ -n ${SESSIONS_SHELL_ZDOTDIR+x} ]]; then
  builtin export ZDOTDIR="$SESSIONS_SHELL_ZDOTDIR"
  builtin unset SESSIONS_SHELL_ZDOTDIR
else
  builtin unset ZDOTDIR
fi
builtin typeset -g _sessions_was=${SESSIONS_SHELL_WAS-} _sessions_now=${SESSIONS_SHELL_NOW-}
builtin unset SESSIONS_SHELL_WAS SESSIONS_SHELL_NOW
builtin typeset _sessions_file=${ZDOTDIR-$HOME}/.zshenv
[[ -r $_sessions_file ]] && builtin source -- "$_sessions_file"
builtin unset _sessions_file

if [[ -o interactive && -z ${_sessions_on-} ]]; then
  builtin typeset -g _sessions_on=1 _sessions_running=

  _sessions_url() {
    builtin emulate -L zsh
    builtin setopt no_multibyte
    builtin local c out=
    for c in ${(s::)1}; do
      case $c in
        ([a-zA-Z0-9/._~-]) out+=$c ;;
        (*) out+=%${(l:2::0:)$(( [##16] #c ))} ;;
      esac
    done
    REPLY=$out
  }

  # what is exported goes into a file of the daemon's; nothing is printed
  _sessions_environment() {
    builtin emulate -L zsh
    [[ -n $_sessions_now ]] || return 0
    builtin zmodload -F zsh/parameter p:parameters 2>/dev/null || return 0
    builtin local _sessions_name _sessions_all=
    for _sessions_name in ${(k)parameters[(R)*export*]}; do
      _sessions_all+="$_sessions_name=${(P)_sessions_name}"$'\0'
    done
    builtin print -rn -- "$_sessions_all" >|$_sessions_now
    if [[ -n $_sessions_was ]]; then
      builtin print -rn -- "$_sessions_all" >|$_sessions_was
      _sessions_was=
    fi
    return 0
  } 2>/dev/null

  _sessions_precmd() {
    builtin local -i ended=$?
    builtin local REPLY
    [[ -n $_sessions_running ]] && builtin printf '\e]133;D;%d\a' $ended
    _sessions_running=
    _sessions_environment
    _sessions_url $PWD
    builtin printf '\e]7;file://%s%s\a\e]133;A\a' "$HOST" "$REPLY"
    [[ $PS1 == *'133;B'* ]] || PS1+=$'%{\e]133;B\a%}'
    return $ended
  }

  _sessions_preexec() {
    builtin local REPLY
    if (( ${#1} > 2000 )); then
      builtin printf '\e]133;C\a'
    else
      _sessions_url $1
      builtin printf '\e]133;C;cmdline_url=%s\a' "$REPLY"
    fi
    _sessions_running=1
  }

  builtin autoload -Uz add-zsh-hook
  # behind the user's own hooks, which are there by the first prompt
  _sessions_begin() {
    add-zsh-hook -d precmd _sessions_begin
    add-zsh-hook precmd _sessions_precmd
    add-zsh-hook preexec _sessions_preexec
    _sessions_precmd
  }
  add-zsh-hook precmd _sessions_begin
fi
