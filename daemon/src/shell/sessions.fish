# Shell integration of sessions-tui for fish: tells where prompts, commands and their ends are (OSC 133) and which folder it is in (OSC 7).
# Found because its folder is in XDG_DATA_DIRS, which is the user's own again from here on.
if set -q SESSIONS_SHELL_XDG
    set -l folders (string split : -- $XDG_DATA_DIRS)
    if set -l at (contains -i -- $SESSIONS_SHELL_XDG $folders)
        set -e folders[$at]
    end
    if test (count $folders) -gt 0
        set -gx XDG_DATA_DIRS (string join : -- $folders)
    else
        set -e XDG_DATA_DIRS
    end
    if set -q SESSIONS_SHELL_XDG_UNSET
        set -e XDG_DATA_DIRS
        set -e SESSIONS_SHELL_XDG_UNSET
    end
    set -e SESSIONS_SHELL_XDG
end
set -g __sessions_was $SESSIONS_SHELL_WAS
set -g __sessions_now $SESSIONS_SHELL_NOW
set -e SESSIONS_SHELL_WAS
set -e SESSIONS_SHELL_NOW
status is-interactive; or exit 0
# what is exported goes into a file of the daemon's; nothing is printed
function __sessions_environment --on-event fish_prompt
    test -n "$__sessions_now"; or return 0
    begin
        for __sessions_name in (set -nx)
            printf '%s=%s\0' $__sessions_name "$$__sessions_name"
        end >$__sessions_now
        if test -n "$__sessions_was"
            for __sessions_name in (set -nx)
                printf '%s=%s\0' $__sessions_name "$$__sessions_name"
            end >$__sessions_was
            set -g __sessions_was
        end
    end 2>/dev/null
    return 0
end
# from its version 4 on fish tells all of this by itself
test (string split . -- $version)[1] -ge 4; and exit 0
function __sessions_prompt --on-event fish_prompt
    printf '\e]7;file://%s%s\a\e]133;A\a' $hostname (string escape --style=url -- $PWD)
end
function __sessions_preexec --on-event fish_preexec
    printf '\e]133;C;cmdline_url=%s\a' (string escape --style=url -- (string sub -l 2000 -- (string join \n -- $argv)) | string join '%0A')
end
function __sessions_postexec --on-event fish_postexec
    printf '\e]133;D;%d\a' $status
end
