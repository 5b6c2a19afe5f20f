#!/bin/sh
# guard.sh COMMAND …: runs a command while holding one of two permits of "loader".
set -u
lease=30 # seconds
# A fresh holder for each attempt: whoever restarts is another holder.
holder=$(hostname)-$$-$(date +%s)
acquire="SEM.ACQUIRE loader HOLDER $holder CAPACITY 2 LEASE ${lease}000"
patience=7 # seconds: a server without a leader holds a request for five before it says so
cli() { timeout $patience redis-cli -p 7360 "$@"; }

# However this script ends, it leaves the line and gives the permit back.
leave() {
  trap : HUP INT TERM
  cli SEM.CANCEL loader "$holder"
  cli SEM.RELEASE loader "$holder"
}
line='' # the client that stands in line
trap 'leave >/dev/null 2>&1' EXIT
trap 'kill $line 2>/dev/null; exit 143' HUP INT TERM

# Wait in the background, because a shell heeds signals only in "wait". To ask again takes nothing
# twice, and says what came of it.
timeout 65 redis-cli -p 7360 $acquire WAIT 60000 >/dev/null & line=$!
wait $line; line=''
grant=$(cli $acquire)
token=$(echo "$grant" | sed -n 2p)
[ "$token" ] || { echo "no permit: ${grant:-none in time, or no server}" >&2; exit 75; }

# ends is the second in which the lease may be over. A call that fails does not move it.
ends=0
left() { echo $((ends - $(date +%s))); }
renew() {
  asked=$(date +%s)
  granted=$(cli SEM.RENEW loader "$holder" LEASE ${lease}000 TOKEN "$token")
  case $granted in
    0) ends=0 ;;
    [1-9]*) ends=$((asked + granted / 1000)) ;;
  esac
}
renew # the lease began at the grant, perhaps long ago
[ $ends -gt 0 ] || { echo "the permit is lost" >&2; exit 75; }

# From here on the clock is to be looked at more often.
patience=2

# The job keeps its input; a signal is passed on to it; the permit is held until it has ended.
stop=''
trap 'stop=yes' HUP INT TERM
{ "$@" <&3 3<&- & } 3<&0
job=$!
while kill -0 $job 2>/dev/null; do
  [ ! "$stop" ] || { kill $job; stop=''; }
  [ "$(left)" -gt $((lease * 2 / 3)) ] || renew
  [ "$(left)" -gt $((lease / 6)) ] || { echo "the permit is lost" >&2; kill $job; break; }
  sleep 1 & wait $!
done
wait $job
