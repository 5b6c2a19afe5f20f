#compdef semctl
# Completion of semctl for zsh. Use: source <(semctl completion zsh), below compinit

_semctl() {
  local line
  local -a found
  for line in "${(@f)$(semctl __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then
    _describe semctl found
  else
    _files
  fi
}

compdef _semctl semctl
