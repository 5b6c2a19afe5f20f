# Completion of semctl for fish. Use: semctl completion fish > ~/.config/fish/completions/semctl.fish

function __semctl_complete
    set -l words (commandline -opc)
    set -l found (command semctl __complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        string join \n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end

complete --command semctl --no-files --arguments '(__semctl_complete)'
