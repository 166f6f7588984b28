# Driver of a persistent bash: calls come in on fd 3, answers go out on fd 4 (see CONTRACT.md).
# As `bash -c`, messages say "bash: line 1: ..." instead of naming this file.
[[ ${BASH_EXECUTION_STRING-} ]] || exec -a bash "$BASH" --norc --noprofile -c 'builtin . "$1"; builtin eval "$__sessions_group"' bash "$0" "$1"

# Descriptors. What bash saves for a redirection that it will undo is close-on-exec, which a script cannot get otherwise.
# So all runs in a group whose redirections hide our descriptors, and the saved copies get these numbers, in that order:
#   30 calls, 31 answers, 32 stdout, 33 stderr (10-29 are filled first: `exec 10>file` by the user must hit nothing of ours).
# The driver's own 0, 1, 2 are /dev/null, so that no trace or message of it shows.
builtin eval exec {5..34}'<&-' {100..119}'</dev/null'
builtin printf -v __sessions_group ' %s<&-' {100..119}
__sessions_group='{ builtin eval "$__sessions_loop"; } '"$__sessions_group 3<&- 4<&- 1>/dev/null 2>/dev/null 0</dev/null"

# One line, and the first of its text: user code then counts its lines from 1. At the top level, not in a function.
# `until`: after `set -n` nothing runs any more and a `while` would spin.
__sessions_loop='until ! __sessions_next; do if __sessions_start; then builtin eval -- "$__sessions_code" <"$__sessions_in" 1>&32 2>&33; else __sessions_q "$__sessions_st" || builtin eval -- "$__sessions_code" <"$__sessions_in" 1>&32 2>&33; fi; __sessions_st=$? __sessions_busy= __sessions_opts=$-; __sessions_end; done; __sessions_leave=1; builtin exit 0'

# SIGINT, `set -e`, `set -u`, ${x:?}: the shell can only die, and its EXIT trap forks the one that goes on.
# errexit rather than `exit` in the INT trap: it leaves the functions that were running.
__sessions_on_int='if [[ ${__sessions_busy-} ]]; then { __sessions_opts=$- __sessions_busy=int; builtin set -e; __sessions_q 130; builtin exit 130; } 2>/dev/null; fi'
__sessions_on_exit='{ \builtin eval "$__sessions_die"; } 120>&2 2>/dev/null'
__sessions_die='__sessions_st=$?
if [[ $__sessions_leave || ! $__sessions_busy ]]; then
  builtin eval "$__sessions_user_exit" 2>&120
else
  [[ $__sessions_busy == int ]] || __sessions_opts=$-
  builtin set +aefuvxkCT
  __sessions_opts=${__sessions_opts//[!aefuvxkCT]}
  __sessions_why=$__sessions_busy __sessions_busy=
  { builtin trap -p; builtin printf "\\0"; } 1<>"$__sessions_scratch"
  builtin exec 121<> <(:)
  ( builtin eval "$__sessions_reborn" ) &
  builtin read -r -t 5 -n 1 -u 121
  builtin trap - EXIT
fi'
__sessions_reborn='builtin exec 2>&120 120>&-
builtin eval exec {10..34}"<&-"
builtin mapfile -d "" -n 1 __sessions_list <"$__sessions_scratch"
builtin eval "${__sessions_list[0]-}"
__sessions_arm
__sessions_hello 31>&4
builtin printf x >&121
builtin exec 121>&-
if [[ $__sessions_why == int ]]; then __sessions_st=130; __sessions_result ",\"interrupted\":true" 31>&4; else __sessions_result "" 31>&4; fi
__sessions_last=
__sessions_state 31>&4
builtin eval "$__sessions_group"'

__sessions_q() { builtin return "$1"; }
__sessions_arm() { builtin trap "$__sessions_on_int" INT; builtin trap "$__sessions_on_exit" EXIT; }
# An `exit` of the user is meant; nothing else tells it from a death by errexit in the EXIT trap.
exit() { builtin set -- "${1-$?}" "${@:2}"; __sessions_leave=1; builtin exit "$@"; }

__sessions_len() { # bytes of $1 -> __sessions_n
  if [[ $1 == *[![:ascii:]]* ]]; then
    builtin local LC_ALL=C || { builtin printf '%s' "$1" >|"$__sessions_scratch"; __sessions_n=$(wc -c <"$__sessions_scratch"); builtin return 0; }
  fi
  __sessions_n=${#1}
}
__sessions_send() { # KIND TEXT
  __sessions_len "$2"
  builtin printf '%s %010d\n%s' "$1" "$__sessions_n" "$2" >&31
}
__sessions_hello() { __sessions_send h "{\"pid\":$BASHPID,\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\"}"; }
__sessions_result() { # EXTRA
  __sessions_text=${PWD-}
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
  __sessions_send r "{\"exit\":$__sessions_st,\"cwd\":\"$__sessions_text\"$1}"
}
__sessions_state() { # traps and environment; without a fork, and without truncating, which some file systems make slow
  { builtin trap -p EXIT INT; builtin printf '\0'; builtin export -p; builtin printf '\0'; } 1<>"$__sessions_scratch"
  builtin mapfile -d '' -n 2 __sessions_list <"$__sessions_scratch"
  if [[ ${__sessions_list[0]} != "$__sessions_traps" ]]; then __sessions_keep_trap; fi
  [[ ${__sessions_list[1]} != "$__sessions_last" ]] || builtin return 0
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
__sessions_next() {
  while :; do
    until builtin read -r -N 18 -u 30 __sessions_head; do (( $? > 128 )) || builtin return 1; done
    __sessions_in=/dev/null __sessions_code=
    (( 10#${__sessions_head:13:4} == 0 )) || __sessions_take "$((10#${__sessions_head:13:4}))" __sessions_in
    (( 10#${__sessions_head:2:10} == 0 )) || __sessions_take "$((10#${__sessions_head:2:10}))" __sessions_code
    [[ ${__sessions_head:0:1} == n ]] || builtin return 0
    __sessions_names
  done
}
__sessions_take() { # -N counts characters: bytes only in the C locale
  if [[ ${LC_ALL+x} ]]; then
    if [[ ${LC_ALL@a} == *r* ]]; then
      builtin printf -v "$2" %s "$(head -c "$1" <&30; builtin printf x)"
      builtin printf -v "$2" %s "${!2%x}"
    else LC_ALL=C builtin read -r -N "$1" -u 30 "$2"; fi
  else LC_CTYPE=C builtin read -r -N "$1" -u 30 "$2"; fi
}
__sessions_start() { # options of the user back on, as the last thing; status: is $? to be 0?
  __sessions_leave= __sessions_busy=1
  [[ ! $__sessions_opts ]] || builtin set "-$__sessions_opts"
  [[ $__sessions_st == 0 ]]
}
__sessions_end() {
  __sessions_options
  __sessions_result ''
  __sessions_state
}
__sessions_options() { # the driver runs without the user's options
  if [[ $__sessions_opts == "$__sessions_plain" ]]; then
    __sessions_opts=
  else
    builtin set +aefuvxkCT
    __sessions_opts=${__sessions_opts//[!aefuvxkCT]}
    builtin export -n __sessions_st __sessions_busy __sessions_opts
  fi
}
__sessions_names() { # lines `f NAME`, `v NAME`
  __sessions_text=$(
    IFS=$' \t\n'
    { builtin compgen -A function | while builtin read -r x; do builtin printf 'f %s\n' "$x"; done
      builtin compgen -v | while builtin read -r x; do
        [[ $__sessions_vars == *" $x "* || " BASH_REMATCH PIPESTATUS _ LINES COLUMNS x " == *" $x "* || ${!x@a} == *x* ]] || builtin printf 'v %s\n' "$x"
      done; } | { LC_ALL=C; n=0; while builtin read -r x; do [[ $x == ?' __sessions_'* || $x == 'f exit' ]] || (( n++ >= 500 )) || builtin printf '%s\n' "${x:0:120}"; done; } )
  __sessions_send n "$__sessions_text"
}

__sessions_scratch=$2 __sessions_st=0 __sessions_busy= __sessions_why= __sessions_leave= __sessions_user_exit= __sessions_last= __sessions_opts= __sessions_traps= __sessions_plain=$-
builtin set --
builtin unset BASH_EXECUTION_STRING
{ builtin compgen -v; builtin printf '\0'; } 1<>"$__sessions_scratch"
builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
__sessions_vars=" ${__sessions_list[0]//$'\n'/ } "
__sessions_arm
{ builtin trap -p EXIT INT; builtin printf '\0'; } 1<>"$__sessions_scratch"
builtin mapfile -d '' -n 1 __sessions_list <"$__sessions_scratch"
__sessions_traps=${__sessions_list[0]}
__sessions_hello 31>&4
__sessions_state 31>&4
builtin shopt -s expand_aliases
