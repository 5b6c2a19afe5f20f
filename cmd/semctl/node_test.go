package main

import (
	"bytes"
	"testing"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

func TestNodeTableShowsWhateverTheServerTells(t *testing.T) {
	var out bytes.Buffer
	s := &session{process: process{stdout: &out}}

	err := s.printTable(nodeTable([]remote.Fields{
		{{Name: "id", Value: "ab"}, {Name: "label", Value: "a"}, {Name: "address", Value: "h:7361"}, {Name: "role", Value: "leader"},
			{Name: "voter", Value: int64(1)}, {Name: "self", Value: int64(1)}, {Name: "client_address", Value: ""}, {Name: "applied", Value: int64(17)}},
		{{Name: "id", Value: "cd"}, {Name: "label", Value: "b\x1b"}, {Name: "role", Value: "unreachable"},
			{Name: "voter", Value: int64(0)}, {Name: "self", Value: int64(0)}, {Name: "applied", Value: int64(-1)}},
	}))

	want := `LABEL    ROLE         VOTER  ASKED  ADDRESS  ID  CLIENT ADDRESS  APPLIED
a        leader       yes    yes    h:7361   ab  -               17
"b\x1b"  unreachable  no     no     -        cd  -               -
`
	if got := out.String(); got != want || err != nil {
		t.Errorf("got\n%s%v, want\n%s", got, err, want)
	}
}
