# Driver of a persistent bash: calls come in on fd 3, answers go out on fd 4.
# From standard input, messages say "bash: line 1: ..." instead of naming this file.
[[ $- == *s* ]] || exec -a bash "$BASH" --norc --noprofile -s "$0" "$1" <<<'builtin . "$1"; builtin eval "$__sessions_group"'

# Descriptors. What bash saves for a redirection that it will undo is close-on-exec, which a script cannot get otherwise.
# So all runs in a group whose redirections hide our descriptors, and the saved copies get these numbers, in that order:
#   30 calls, 31 answers, 32 stdout, 33 stderr (10-29 are filled first: `exec 10>file` by the user must hit nothing of ours).
# The driver's own 0, 1, 2 are /dev/null, so that no trace or message of it shows.
builtin eval exec {5..34}'<&-' {100..119}'</dev/null'
builtin printf -v __sessions_group ' %s<&-' {100..119}
__sessions_group='{ builtin eval "$__sessions_loop"; } '"$__sessions_group 3<&- 4<&- 1>/dev/null 2>/dev/null 0</dev/null"

# One line, and the first of its text: user code then counts its lines from 1. At the top level, not in a function.
# `until`: after `set -n` nothing runs any more, and with extdebug a DEBUG trap can skip every command with status 0; a `while`
# would spin. A `continue` of the user's comes to __sessions_done with an exec under way, a `break` to what follows `done`.
__sessions_loop='until __sessions_done; do if __sessions_start; then builtin eval -- "$__sessions_code" <"$__sessions_in" 1>&32 2>&33; else __sessions_q "$__sessions_st" || builtin eval -- "$__sessions_code" <"$__sessions_in" 1>&32 2>&33; fi; __sessions_st=$? __sessions_busy= __sessions_opts=$-; __sessions_guard; __sessions_end; done; if [[ $__sessions_busy ]]; then __sessions_jumped break; builtin eval "$__sessions_loop"; fi; __sessions_leave=1; builtin exit 70'

# SIGINT, `set -e`, `set -u`, ${x:?}: the shell can only die, and its EXIT trap forks the one that goes on.
# ${x?} rather than `exit` in the INT trap: it leaves the functions and redirections that were under way.
__sessions_on_int='if [[ ${__sessions_busy-} ]]; then { __sessions_busy=int; [[ ${__sessions_none?} ]]; builtin exit 130; } 2>/dev/null; fi'
# What is parsed anew must not meet the user's aliases.
__sessions_on_exit='{ __sessions_st=$?; __sessions_guard; __sessions_no_alias; \builtin eval "$__sessions_die"; } 120>&2 2>/dev/null'
__sessions_die='if __sessions_real_exit; then builtin eval "$__sessions_user_exit" 2>&120; else ( __sessions_reborn; builtin eval "$__sessions_group" ); fi'
__sessions_no_alias() { builtin shopt -q expand_aliases && { __sessions_alias=1; builtin shopt -u expand_aliases; }; }
__sessions_real_exit() {
  [[ ! $__sessions_leave && $__sessions_busy ]] || builtin return 0
  # a signal (SIGTERM, SIGHUP): none of the others leaves with a status of 0, and to go on would tell a killed call as a success
  [[ $__sessions_st != 0 || $__sessions_busy == int ]] || builtin return 0
  __sessions_opts=$-
  builtin set +aefuvxkT
  __sessions_opts=${__sessions_opts//[!aefuvxkT]}
  __sessions_why=$__sessions_busy __sessions_busy= __sessions_old=$BASHPID
  { builtin trap -p; builtin printf '\0'; } 1<>"$__sessions_scratch"
  builtin return 1
}
# Not a background job: that would have SIGINT ignored for good. So the old shell waits for the new one, which ends it.
__sessions_reborn() {
  builtin unset -f exec
  exec 2>&120 120>&-
  if builtin printf '' 2>/dev/null >&31; then exec 3<&30 4>&31 1>&32 2>&33 0</dev/null; fi # died by a `builtin exit`: nothing was undone
  builtin eval exec {10..34}'<&-' {100..119}'</dev/null'
  builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
  builtin eval "${__sessions_list[0]-}"
  __sessions_arm
  __sessions_hello 31>&4
  builtin kill -KILL "$__sessions_old"
  if [[ $__sessions_why == int ]]; then
    __sessions_st=130
    __sessions_result ',"interrupted":true' 31>&4
  else
    __sessions_result '' 31>&4
  fi
  __sessions_state 31>&4
}

# A function named `builtin` would run instead of ours: code in it has one more frame on the stack, or is not run at all. In POSIX
# mode special builtins (unset, exit) come before functions.
__sessions_guard() {
  __sessions_depth=
  builtin eval '__sessions_depth=${#FUNCNAME[@]}'
  if [[ $__sessions_depth != "${#FUNCNAME[@]}" ]]; then
    if [[ -o posix ]]; then unset -f builtin; else POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; builtin shopt -s expand_aliases; fi
    __sessions_depth=
    builtin eval '__sessions_depth=${#FUNCNAME[@]}'
    if [[ $__sessions_depth != "${#FUNCNAME[@]}" ]]; then POSIXLY_CORRECT=1 __sessions_leave=1; exit 70; fi
  fi
}
# The exec cannot be answered any more: the user closed our descriptors.
__sessions_lost() { __sessions_leave=1; builtin exit 70; }
__sessions_jumped() { # `break` or `continue` outside of a loop took the driver's loop
  __sessions_st=1 __sessions_busy= __sessions_opts=$-
  __sessions_guard
  builtin printf "bash: %s: only meaningful in a \`for', \`while', or \`until' loop; the rest of this exec was not run\\n" "$1" 1>"${__sessions_err:-/dev/fd/33}"
  __sessions_end
  __sessions_no_alias # the loop may be parsed anew
}
__sessions_q() { builtin return "$1"; }
__sessions_arm() { builtin trap "$__sessions_on_int" INT; builtin trap "$__sessions_on_exit" EXIT; }
# An `exit` of the user is meant; nothing else tells it from a death by errexit in the EXIT trap.
exit() { { builtin set -- "${1-$?}" "${@:2}"; __sessions_leave=1; builtin set +xv; } 2>/dev/null; builtin exit "$@"; }

__sessions_len() { # bytes of $1 -> __sessions_n
  if [[ $1 == *[![:ascii:]]* ]]; then
    builtin local LC_ALL=C || { builtin printf '%s' "$1" >|"$__sessions_scratch"; __sessions_n=$(builtin command wc -c <"$__sessions_scratch"); builtin return 0; }
  fi
  __sessions_n=${#1}
}
__sessions_send() { # KIND TEXT
  __sessions_len "$2"
  builtin printf '%s%s %010d\n%s' "$__sessions_nonce" "$1" "$__sessions_n" "$2" >&31 || __sessions_lost
}
__sessions_hello() { __sessions_send h "{\"pid\":$BASHPID,\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\"}"; }
# Texts are compared with `[`: [[ takes the right side for a pattern, which is slow in UTF-8.
__sessions_result() { # EXTRA
  if ! builtin [ "${PWD-}" = "$__sessions_pwd" ] || [[ ! . -ef $__sessions_pwd ]]; then __sessions_where; fi
  builtin printf '%sr %010d\n{"exit":%s,"cwd":%s%s}' "$__sessions_nonce" "$((16 + ${#__sessions_st} + __sessions_cwd_n + ${#1}))" "$__sessions_st" "$__sessions_cwd" "$1" >&31 || __sessions_lost
}
__sessions_where() { # the folder as JSON -> __sessions_cwd, __sessions_cwd_n
  __sessions_pwd=${PWD-} __sessions_text=${PWD-}
  if [[ ! . -ef $__sessions_text ]]; then # the user meddled with PWD, or the folder is gone
    { builtin pwd -P; builtin printf '\0'; } 1<>"$__sessions_scratch"
    builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
    __sessions_text=${__sessions_list[0]-}
    __sessions_text=${__sessions_text%$'\n'}
    __sessions_text=${__sessions_text:-${PWD-/}}
  fi
  if [[ $__sessions_text == *[\"\\[:cntrl:]]* ]]; then
    __sessions_text=${__sessions_text//\\/\\\\}
    __sessions_text=${__sessions_text//\"/\\\"}
    __sessions_text=${__sessions_text//$'\n'/\\n}
    __sessions_text=${__sessions_text//$'\t'/\\t}
    __sessions_text=${__sessions_text//[[:cntrl:]]/?}
  fi
  __sessions_cwd=\"$__sessions_text\"
  __sessions_len "$__sessions_cwd"
  __sessions_cwd_n=$__sessions_n
}
__sessions_state() { # traps and environment; without a fork, and without truncating, which some file systems make slow
  { builtin trap -p EXIT INT; builtin printf '\0'; builtin export -p; builtin printf '\0'; } 1<>"$__sessions_scratch"
  builtin mapfile -d '' -n 2 __sessions_list <"$__sessions_scratch"
  builtin [ "${__sessions_list[0]}" = "$__sessions_traps" ] || __sessions_keep_trap
  ! builtin [ "${__sessions_list[1]}" = "$__sessions_last" ] || builtin return 0
  __sessions_last=${__sessions_list[1]}
  __sessions_len "$__sessions_last"
  (( __sessions_n > 262144 )) || __sessions_send s "$__sessions_last"
}
__sessions_keep_trap() { # the user's EXIT trap is kept for a real exit; an INT trap lasts for its call
  __sessions_text=${__sessions_list[0]}
  if [[ $__sessions_text != *"__sessions_die"* ]]; then
    __sessions_user_exit=
    if [[ $__sessions_text == 'trap -- '*' EXIT'$'\n'* ]]; then
      __sessions_text=${__sessions_text%%' EXIT'$'\n'*}
      builtin eval "__sessions_user_exit=${__sessions_text#trap -- }"
    fi
  fi
  __sessions_arm
}
# Waits for the next exec; status 0: there is none. Uses no `return`, which the user can disable.
__sessions_done() {
  if [[ $__sessions_busy ]]; then __sessions_jumped continue; fi
  __sessions_got=
  while [[ ! $__sessions_got ]]; do
    __sessions_fetch 18 __sessions_head
    if [[ $__sessions_head != [xvnaXVNAO]' '[0-9]*$'\n' ]]; then
      __sessions_got=end
    else
      if [[ $__sessions_head == [XVNAO]* ]]; then # asked with a nonce, and answered with it
        __sessions_fetch 17 __sessions_nonce
        __sessions_nonce="${__sessions_nonce:0:16} "
      fi
      __sessions_in=/dev/null __sessions_code=
      (( 10#${__sessions_head:13:4} == 0 )) || __sessions_take "$((10#${__sessions_head:13:4}))" __sessions_in
      (( 10#${__sessions_head:2:10} == 0 )) || __sessions_take "$((10#${__sessions_head:2:10}))" __sessions_code
      if [[ $__sessions_head == [nN]* ]]; then __sessions_names; elif [[ $__sessions_head == O* ]]; then __sessions_switch; else __sessions_got=exec; fi
    fi
  done
  if [[ $__sessions_out ]]; then # code of its own, because a redirection that fails would keep ours from running
    __sessions_own=$__sessions_code
    __sessions_code='builtin eval -- "$__sessions_own" 1>"$__sessions_out" 2>"$__sessions_err"'
  fi
  [[ $__sessions_got == end ]]
}
__sessions_switch() { # from now on code prints into other pipes: something that it left running still prints into these
  if { builtin printf ''; } 1>"${__sessions_in% *}" 2>"${__sessions_in#* }"; then
    __sessions_out=${__sessions_in% *} __sessions_err=${__sessions_in#* }
    __sessions_send o 1
  else
    __sessions_send o 0
  fi
}
__sessions_fetch() { # BYTES VARIABLE; nothing at the end. A signal may interrupt it
  builtin printf -v "$2" ''
  __sessions_n=129
  until (( __sessions_n <= 128 )); do
    builtin read -r -N "$1" -u 30 "$2"
    __sessions_n=$?
  done
}
__sessions_take() { # -N counts characters: bytes only in the C locale; to change that is slow, so op `a` says: x, and all ASCII
  if [[ $__sessions_head == [aA]* ]]; then
    builtin read -r -N "$1" -u 30 "$2"
  elif [[ ${LC_ALL+x} ]]; then
    if [[ ${LC_ALL@a} == *r* ]]; then
      builtin printf -v "$2" %s "$(builtin command head -c "$1" <&30; builtin printf x)"
      builtin printf -v "$2" %s "${!2%x}"
    else LC_ALL=C builtin read -r -N "$1" -u 30 "$2"; fi
  else LC_CTYPE=C builtin read -r -N "$1" -u 30 "$2"; fi
}
__sessions_start() { # options of the user back on, as the last thing; status: is $? to be 0?
  __sessions_leave= __sessions_busy=1
  [[ ! $__sessions_alias ]] || { __sessions_alias=; builtin shopt -s expand_aliases; }
  [[ ! $__sessions_opts ]] || builtin set "-$__sessions_opts"
  [[ $__sessions_st == 0 ]]
}
__sessions_end() {
  if builtin [ "$__sessions_opts" = "$__sessions_plain" ]; then
    __sessions_opts=
  else # the driver runs without the user's options
    builtin set +aefuvxkT
    __sessions_opts=${__sessions_opts//[!aefuvxkT]}
    builtin export -n __sessions_st __sessions_busy __sessions_opts
  fi
  [[ -p /dev/fd/30 && -p /dev/fd/31 && -p /dev/fd/32 && -p /dev/fd/33 ]] || __sessions_lost # closed or replaced by the user
  __sessions_result ''
  __sessions_state
}
__sessions_names() { # lines `f NAME`, `v NAME`; rare, may fork
  __sessions_text=$(
    IFS=$'\n' __sessions_n=0
    builtin set -f
    for __sessions_head in $(builtin compgen -A function); do
      [[ $__sessions_head == __sessions_* || $__sessions_head == exit ]] || (( __sessions_n++ >= 500 )) || builtin printf 'f %s\n' "${__sessions_head:0:120}"
    done
    for __sessions_head in $(builtin compgen -v); do
      [[ $__sessions_head == __sessions_* || " $__sessions_vars BASH_REMATCH PIPESTATUS FUNCNAME _ LINES COLUMNS " == *" $__sessions_head "* || ${!__sessions_head@a} == *x* ]] ||
        (( __sessions_n++ >= 500 )) || builtin printf 'v %s\n' "${__sessions_head:0:120}"
    done )
  __sessions_send n "$__sessions_text"
}

__sessions_scratch=$2 __sessions_st=0 __sessions_busy= __sessions_why= __sessions_leave= __sessions_user_exit= __sessions_last= __sessions_opts= __sessions_traps= __sessions_alias= __sessions_pwd= __sessions_nonce= __sessions_got= __sessions_depth= __sessions_out= __sessions_err= __sessions_own= __sessions_plain=$-
builtin set --
{ builtin compgen -v; builtin printf '\0'; } 1<>"$__sessions_scratch"
builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
__sessions_vars=" ${__sessions_list[0]//$'\n'/ } "
__sessions_arm
{ builtin trap -p EXIT INT; builtin printf '\0'; } 1<>"$__sessions_scratch"
builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
__sessions_traps=${__sessions_list[0]}
__sessions_state 31>&4 # before the hello, which tells that no code of the user's has run yet
__sessions_hello 31>&4
builtin readonly -f __sessions_{no_alias,real_exit,reborn,guard,lost,jumped,q,arm,len,send,hello,result,where,state,keep_trap,done,switch,fetch,take,start,end,names}
builtin readonly __sessions_{group,loop,on_int,on_exit,die,scratch,traps,vars,plain}
builtin shopt -s expand_aliases execfail # as at a prompt
