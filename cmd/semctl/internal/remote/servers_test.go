package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

func TestNextServerIsAskedWhenOneDidCertainlyNothing(t *testing.T) {
	for _, first := range []string{"-CLUSTERDOWN no leader\r\n", "-SHUTDOWN stopping\r\n", "-ERR max number of clients reached\r\n"} {
		a, b := startFake(t, always(first)), startFake(t, always(say1))
		s := open(t, patience, refusing(t), a.addr(), b.addr())

		got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.DELETE", "k"} }, Once: true})

		if got != (Reply{Value: int64(1)}) || err != nil {
			t.Errorf("%q: got %v, %v, want 1 without a doubt", first, got, err)
		}
	}
}

func TestServerThatAnsweredIsAskedAgain(t *testing.T) {
	b := startFake(t, always(say1))
	s := open(t, patience, refusing(t), b.addr())
	for range 3 {
		if _, err := s.Do(t.Context(), Words("SEM.HELP")); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.current.Load(); got != 1 {
		t.Errorf("the server in use: got %d, want 1", got)
	}
}

func TestRefusalIsTheAnswer(t *testing.T) {
	a, b := startFake(t, always("-NOSEM no such semaphore\r\n")), startFake(t, always(say1))
	s := open(t, patience, a.addr(), b.addr())

	_, err := s.Do(t.Context(), Words("SEM.INFO", "k"))

	var refused *Refusal
	if !errors.As(err, &refused) || refused.Code != "NOSEM" || refused.Text != "NOSEM no such semaphore" {
		t.Errorf("got %v, want NOSEM", err)
	}
	if b.heard() != "" {
		t.Errorf("the second server heard %q, want nothing", b.heard())
	}
}

func TestLostAnswerLeavesADoubt(t *testing.T) {
	for _, lost := range []string{hangUp, "-UNCERTAIN holder w may hold\r\n"} {
		a := startFake(t, inTurn(lost, say0))
		s := open(t, patience, a.addr())

		got, err := s.Do(t.Context(), Words("SEM.RELEASE", "k", "w"))

		if got != (Reply{Value: int64(0), Doubtful: true}) || err != nil {
			t.Errorf("%q: got %v, %v, want 0 and a doubt", lost, got, err)
		}
	}
}

func TestWhatMustNotBeSentTwiceIsNot(t *testing.T) {
	a := startFake(t, inTurn(hangUp, say1))
	s := open(t, patience, a.addr())

	_, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.DELETE", "k", "FORCE"} }, Once: true})

	if !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if got := a.heard(); got != "SEM.DELETE k FORCE" {
		t.Errorf("the server heard %q, want it once", got)
	}
}

func TestEveryAttemptAsksForItsOwnWords(t *testing.T) {
	a := startFake(t, inTurn("-SHUTDOWN stopping\r\n", say1))
	s := open(t, patience, a.addr())
	n := 0

	_, err := s.Do(t.Context(), Command{Args: func() []any { n++; return []any{"WAIT", n} }, Blocks: time.Minute})

	if got := a.heard(); got != "WAIT 1\nWAIT 2" || err != nil {
		t.Errorf("the server heard %q, %v, want the second attempt to differ", got, err)
	}
}

func TestPatienceEnds(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   error
	}{{"-CLUSTERDOWN no leader\r\n", ErrUnavailable}, {"", ErrUnknown}, {hangUp, ErrUnknown}} {
		a := startFake(t, always(c.answer))
		s := open(t, 300*time.Millisecond, a.addr())
		began := time.Now()

		_, err := s.Do(t.Context(), Words("SEM.RELEASE", "k", "w"))

		if passed := time.Since(began); !errors.Is(err, c.want) || passed < 200*time.Millisecond || passed > patience {
			t.Errorf("%q: got %v after %v, want %v after 300ms", c.answer, err, passed, c.want)
		}
	}
}

func TestWaitDoesNotMakePatientWithServersThatAreNotThere(t *testing.T) {
	s := open(t, 200*time.Millisecond, refusing(t))
	began := time.Now()

	_, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if passed := time.Since(began); !errors.Is(err, ErrUnavailable) || passed > patience {
		t.Errorf("got %v after %v, want ErrUnavailable after 200ms", err, passed)
	}
}

func TestRequestDoesNotWaitWhereThereIsNoSignOfLife(t *testing.T) {
	stopped, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	b := startFake(t, always(say1))
	s := open(t, 2*time.Second, stopped.Addr().String(), b.addr())

	got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if got != (Reply{Value: int64(1)}) || err != nil {
		t.Errorf("got %v, %v, want the answer of the other, without a doubt", got, err)
	}
}

func TestWaitSurvivesServersThatComeAndGo(t *testing.T) {
	a := startFake(t, inTurn(hangUp, "-SHUTDOWN stopping\r\n", hangUp, "-SHUTDOWN stopping\r\n", hangUp, hangUp, hangUp, hangUp, say1))
	s := open(t, 300*time.Millisecond, a.addr()) // with a pause after each, they are longer away than that

	got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if got.Value != any(int64(1)) || err != nil {
		t.Errorf("got %v, %v, want the answer", got, err)
	}
}

func TestQuestionWithoutAnAnswerLeavesNoDoubt(t *testing.T) {
	a := startFake(t, inTurn(hangUp, say1))
	s := open(t, patience, a.addr())
	if got, err := s.Do(t.Context(), Question("SEM.CHECK", "k", "w", 7)); got.Doubtful || err != nil {
		t.Errorf("got %v, %v, want no doubt", got, err)
	}
	silent := startFake(t, always(""))
	impatient := open(t, 100*time.Millisecond, silent.addr())
	if _, err := impatient.Do(t.Context(), Question("SEM.INFO", "k")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without any answer: got %v, want ErrUnavailable", err)
	}
}

func TestContextEndsARequestThatIsNotAnswered(t *testing.T) {
	a := startFake(t, always(""))
	s := open(t, time.Hour, a.addr())
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, Command{Args: func() []any { return []any{"SEM.ACQUIRE", "k"} }, Blocks: time.Hour})
		failed <- err
	}()
	for deadline := time.Now().Add(patience); a.heard() == ""; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was asked")
		}
		time.Sleep(time.Millisecond)
	}

	cancel()

	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClosedServersAreNotAsked(t *testing.T) {
	a := startFake(t, always(say1))
	s := open(t, patience, a.addr())
	s.Close()

	if _, err := s.Do(t.Context(), Words("SEM.HELP")); !errors.Is(err, errClosed) {
		t.Errorf("got %v, want errClosed", err)
	}
	if reach := s.Reach(t.Context()); reach[0].Err == nil {
		t.Errorf("reach: got %v, want an error", reach)
	}
}

func TestReadKeepsRefusalsApart(t *testing.T) {
	a := startFake(t, inTurn("-CLUSTERDOWN no leader\r\n", say0, say1, "-NOSEM no such semaphore\r\n", say1))
	s := open(t, patience, a.addr())

	got, err := s.Read(t.Context(), []any{"A"}, []any{"B"}, []any{"C"})

	// The first pipeline ends at the CLUSTERDOWN; its other replies are not used.
	if err != nil || fmt.Sprint(got) != "[NOSEM no such semaphore 1 1]" {
		t.Errorf("got %v, %v, want a refusal and two values", got, err)
	}
}

func TestReachTellsWhoAnswers(t *testing.T) {
	a := startFake(t, always("+PONG\r\n"))
	s := open(t, patience, a.addr(), refusing(t))

	got := s.Reach(t.Context())

	if got[0].Err != nil || got[1].Err == nil {
		t.Errorf("got %v, want that the first answers and the second does not", got)
	}
}
