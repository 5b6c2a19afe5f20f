package semtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/semaphore"
)

// flaw names a fault that is built into the naive engine on purpose; empty: none.
type flaw string

// flawVariable tells a second run of this test binary which flaw to try.
const flawVariable = "SEMTEST_FLAW"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNaiveEngineConforms(t *testing.T) {
	Run(t, func(t *testing.T) semaphore.Backend {
		n := newNaive(flaw(os.Getenv(flawVariable)))
		t.Cleanup(n.close)
		return n
	})
}

// TestFlawsAreFound runs single cases against engines with a fault, each of which they must find.
func TestFlawsAreFound(t *testing.T) {
	for found, f := range map[string]flaw{
		"EndedLeaseServesTheLineWithoutTraffic": "leases end early",
		"LeaseStartsAtTheGrant":                 "leases start at the request",
		"SmallRequestsDoNotOvertake":            "small requests overtake",
		"GiveBackGoesByTicket":                  "give-back ignores the ticket",
		"DeleteByForceRefusesTheLine":           "tokens start anew with the semaphore",
		"TakeOverKeepsThePlace":                 "a repeat keeps the older lease",
		"RepeatAtOnceTakesOnePermit":            "a repeat takes another permit",
		"CancelLeavesTheLine":                   "cancel says yes to who does not wait",
		"GrowServesTheLine":                     "resize wakes nobody",
		"WhoQuitMayComeBack":                    "who quits is in nobody's way and in nobody's line",
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			again := exec.Command(os.Args[0], "-test.run=^TestNaiveEngineConforms$/^"+found+"$", "-test.timeout=2m")
			again.Env = append(os.Environ(), flawVariable+"="+string(f))
			out, err := again.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestNaiveEngineConforms/"+found) {
				t.Errorf("%s passed with an engine where %s:\n%s", found, f, out)
			}
		})
	}
}
