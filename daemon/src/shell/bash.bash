# Shell integration of sessions-tui for bash: tells where prompts, commands and their ends are (OSC 133) and which folder it is in (OSC 7).
# Read instead of the user's own files (bash --posix reads only $ENV), which it then reads as bash would have.
[[ $- == *i* ]] || return 0
if [[ -n ${SESSIONS_SHELL_INJECT-} ]]; then
  builtin unset SESSIONS_SHELL_INJECT ENV
  [[ -n ${SESSIONS_SHELL_ENV-} ]] && builtin export ENV="$SESSIONS_SHELL_ENV"
  builtin unset SESSIONS_SHELL_ENV
  __sessions_was=${SESSIONS_SHELL_WAS-} __sessions_now=${SESSIONS_SHELL_NOW-}
  builtin unset SESSIONS_SHELL_WAS SESSIONS_SHELL_NOW
  builtin set +o posix
  builtin shopt -u inherit_errexit 2>/dev/null
  if [[ -n ${SESSIONS_SHELL_HISTFILE-} ]]; then
    # in posix mode the history would go elsewhere; it was set only for that
    builtin export -n HISTFILE
    builtin unset SESSIONS_SHELL_HISTFILE
  fi
  if builtin shopt -q login_shell; then
    [[ -r /etc/profile ]] && . /etc/profile
    for __sessions_file in ~/.bash_profile ~/.bash_login ~/.profile; do
      [[ -r $__sessions_file ]] && { . "$__sessions_file"; break; }
    done
  else
    for __sessions_file in /etc/bash.bashrc /etc/bash/bashrc /etc/bashrc; do
      [[ -r $__sessions_file ]] && { . "$__sessions_file"; break; }
    done
    [[ -r ~/.bashrc ]] && . ~/.bashrc
  fi
  builtin unset __sessions_file
fi
[[ -n ${__sessions_on-} ]] && return 0
__sessions_on=1 __sessions_running= __sessions_cwd= __sessions_number=

__sessions_url() {
  builtin local LC_ALL=C text="$1" i c n out=
  for ((i = 0; i < ${#text}; i++)); do
    c=${text:i:1}
    case $c in
      [a-zA-Z0-9/._~-]) out+=$c ;;
      *)
        builtin printf -v n '%d' "'$c"
        builtin printf -v c '%%%02X' $((n & 255))
        out+=$c
        ;;
    esac
  done
  REPLY=$out
}

# what is exported goes into a file of the daemon's, by redirection alone: no process is started for it, and nothing is printed
__sessions_environment() {
  [[ -n ${__sessions_now-} ]] || return 0
  {
    builtin declare -px >|"$__sessions_now"
    if [[ -n $__sessions_was ]]; then
      builtin declare -px >|"$__sessions_was"
      __sessions_was=
    fi
  } 2>/dev/null
  return 0
}

__sessions_precmd() {
  builtin local status=$?
  builtin local REPLY
  [[ -n $__sessions_running ]] && builtin printf '\e]133;D;%d\a' "$status"
  __sessions_running=
  if [[ $PWD != "$__sessions_cwd" ]]; then
    __sessions_cwd=$PWD
    __sessions_url "$PWD"
    builtin printf '\e]7;file://%s%s\a' "$HOSTNAME" "$REPLY"
  fi
  __sessions_environment
  builtin printf '\e]133;A\a'
  [[ ${PS1-} == *'133;B'* ]] || PS1+='\[\e]133;B\a\]'
  if [[ ${PS0-} != *__sessions_preexec* ]]; then
    # a substitution is a subshell: the flag is set by the arithmetic behind it
    PS0+='$(__sessions_preexec >/dev/tty)${__sessions_running:0:$((__sessions_running=1,0))}'
  fi
  __sessions_number=$(HISTTIMEFORMAT= builtin history 1)
  __sessions_number=${__sessions_number%%[![:space:][:digit:]]*}
  return $status
}

__sessions_preexec() {
  builtin local line number REPLY
  line=$(HISTTIMEFORMAT= builtin history 1)
  number=${line%%[![:space:][:digit:]]*}
  line=${line#"$number"}
  line=${line#[* ]}
  line=${line# }
  # what the history does not keep (a blank before it, a repeated line) is told without its text: it is on the screen
  if [[ $number == "$__sessions_number" || ${#line} -gt 2000 ]]; then
    builtin printf '\e]133;C\a'
  else
    __sessions_url "$line"
    builtin printf '\e]133;C;cmdline_url=%s\a' "$REPLY"
  fi
}

# first, so that it sees how the command ended; written so that it is nothing in a shell that inherits it (PROMPT_COMMAND may be exported)
if [[ $(builtin declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
  PROMPT_COMMAND=('${__sessions_on:+__sessions_precmd}' "${PROMPT_COMMAND[@]}")
else
  PROMPT_COMMAND='${__sessions_on:+__sessions_precmd}'"${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
fi
