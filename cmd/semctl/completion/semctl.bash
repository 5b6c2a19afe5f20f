# Completion of semctl for bash. Use: source <(semctl completion bash)

_semctl() {
  # COMP_WORDS is split at ":" and "=", which names and flags contain; the line is not.
  local line=${COMP_LINE:0:COMP_POINT} found word prefix
  local -a words
  IFS=$' \t\n' read -a words <<<"$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  word=${words[${#words[@]} - 1]}
  # What bash replaces begins behind the last of those characters.
  prefix=${word%"${word##*[:=]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r found _; do
    COMPREPLY+=("${found#"$prefix"}")
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
}

complete -o default -F _semctl semctl
