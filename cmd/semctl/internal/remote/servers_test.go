package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

func TestNextServerIsAskedWhenOneDidCertainlyNothing(t *testing.T) {
	for _, first := range []string{"-CLUSTERDOWN no leader\r\n", "-SHUTDOWN stopping\r\n", "-ERR max number of clients reached\r\n"} {
		a, b := trial.Serve(t, always(first)), trial.Serve(t, always(say1))
		s := open(t, trial.Patience, refusing(t), a.Addr(), b.Addr())

		got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.DELETE", "k"} }, Once: true})

		if got != (Reply{Value: int64(1)}) || err != nil {
			t.Errorf("%q: got %v, %v, want 1 without a doubt", first, got, err)
		}
	}
}

func TestServerThatAnsweredIsAskedAgain(t *testing.T) {
	b := trial.Serve(t, always(say1))
	s := open(t, trial.Patience, refusing(t), b.Addr())
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
	a, b := trial.Serve(t, always("-NOSEM no such semaphore\r\n")), trial.Serve(t, always(say1))
	s := open(t, trial.Patience, a.Addr(), b.Addr())

	_, err := s.Do(t.Context(), Words("SEM.INFO", "k"))

	var refused *Refusal
	if !errors.As(err, &refused) || refused.Code != "NOSEM" || refused.Text != "NOSEM no such semaphore" {
		t.Errorf("got %v, want NOSEM", err)
	}
	if got := b.Asked(); len(got) != 0 {
		t.Errorf("the second server heard %q, want nothing", got)
	}
}

func TestLostAnswerLeavesADoubt(t *testing.T) {
	for _, lost := range []string{trial.HangUp, "-UNCERTAIN holder w may hold\r\n"} {
		a := trial.Serve(t, trial.InTurn(lost, say0))
		s := open(t, trial.Patience, a.Addr())

		got, err := s.Do(t.Context(), Words("SEM.RELEASE", "k", "w"))

		if got != (Reply{Value: int64(0), Doubtful: true}) || err != nil {
			t.Errorf("%q: got %v, %v, want 0 and a doubt", lost, got, err)
		}
	}
}

func TestWhatMustNotBeSentTwiceIsNot(t *testing.T) {
	a := trial.Serve(t, trial.InTurn(trial.HangUp, say1))
	s := open(t, trial.Patience, a.Addr())

	_, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.DELETE", "k", "FORCE"} }, Once: true})

	if !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if got := a.Asked(); !slices.Equal(got, []string{"SEM.DELETE k FORCE"}) {
		t.Errorf("the server heard %q, want it once", got)
	}
}

func TestEveryAttemptAsksForItsOwnWords(t *testing.T) {
	a := trial.Serve(t, trial.InTurn("-SHUTDOWN stopping\r\n", say1))
	s := open(t, trial.Patience, a.Addr())
	n := 0

	_, err := s.Do(t.Context(), Command{Args: func() []any { n++; return []any{"WAIT", n} }, Blocks: time.Minute})

	if got := a.Asked(); !slices.Equal(got, []string{"WAIT 1", "WAIT 2"}) || err != nil {
		t.Errorf("the server heard %q, %v, want the second attempt to differ", got, err)
	}
}

func TestPatienceEnds(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   error
	}{{"-CLUSTERDOWN no leader\r\n", ErrUnavailable}, {"", ErrUnknown}, {trial.HangUp, ErrUnknown}} {
		a := trial.Serve(t, always(c.answer))
		s := open(t, 300*time.Millisecond, a.Addr())
		began := time.Now()

		_, err := s.Do(t.Context(), Words("SEM.RELEASE", "k", "w"))

		if passed := time.Since(began); !errors.Is(err, c.want) || passed < 200*time.Millisecond || passed > trial.Patience {
			t.Errorf("%q: got %v after %v, want %v after 300ms", c.answer, err, passed, c.want)
		}
	}
}

func TestWaitDoesNotMakePatientWithServersThatAreNotThere(t *testing.T) {
	s := open(t, 200*time.Millisecond, refusing(t))
	began := time.Now()

	_, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if passed := time.Since(began); !errors.Is(err, ErrUnavailable) || passed > trial.Patience {
		t.Errorf("got %v after %v, want ErrUnavailable after 200ms", err, passed)
	}
}

func TestRequestDoesNotWaitWhereThereIsNoSignOfLife(t *testing.T) {
	stopped, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	b := trial.Serve(t, always(say1))
	s := open(t, 2*time.Second, stopped.Addr().String(), b.Addr())

	got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if got != (Reply{Value: int64(1)}) || err != nil {
		t.Errorf("got %v, %v, want the answer of the other, without a doubt", got, err)
	}
}

func TestWaitSurvivesServersThatComeAndGo(t *testing.T) {
	a := trial.Serve(t, trial.InTurn(trial.HangUp, "-SHUTDOWN stopping\r\n", trial.HangUp, "-SHUTDOWN stopping\r\n", trial.HangUp, trial.HangUp, trial.HangUp, trial.HangUp, say1))
	s := open(t, 300*time.Millisecond, a.Addr()) // with a pause after each, they are longer away than that

	got, err := s.Do(t.Context(), Command{Args: func() []any { return []any{"SEM.ACQUIRE"} }, Blocks: time.Hour})

	if got.Value != any(int64(1)) || err != nil {
		t.Errorf("got %v, %v, want the answer", got, err)
	}
}

func TestQuestionWithoutAnAnswerLeavesNoDoubt(t *testing.T) {
	a := trial.Serve(t, trial.InTurn(trial.HangUp, say1))
	s := open(t, trial.Patience, a.Addr())
	if got, err := s.Do(t.Context(), Question("SEM.CHECK", "k", "w", 7)); got.Doubtful || err != nil {
		t.Errorf("got %v, %v, want no doubt", got, err)
	}
	silent := trial.Serve(t, always(""))
	impatient := open(t, 100*time.Millisecond, silent.Addr())
	if _, err := impatient.Do(t.Context(), Question("SEM.INFO", "k")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without any answer: got %v, want ErrUnavailable", err)
	}
}

func TestContextEndsARequestThatIsNotAnswered(t *testing.T) {
	a := trial.Serve(t, always(""))
	s := open(t, time.Hour, a.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, Command{Args: func() []any { return []any{"SEM.ACQUIRE", "k"} }, Blocks: time.Hour})
		failed <- err
	}()
	trial.Await(t, func() error {
		if len(a.Asked()) == 0 {
			return errors.New("nothing was asked")
		}
		return nil
	})

	cancel()

	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClosedServersAreNotAsked(t *testing.T) {
	a := trial.Serve(t, always(say1))
	s := open(t, trial.Patience, a.Addr())
	s.Close()

	if _, err := s.Do(t.Context(), Words("SEM.HELP")); !errors.Is(err, errClosed) {
		t.Errorf("got %v, want errClosed", err)
	}
	if reach := s.Reach(t.Context()); reach[0].Err == nil {
		t.Errorf("reach: got %v, want an error", reach)
	}
}

func TestReadKeepsRefusalsApart(t *testing.T) {
	a := trial.Serve(t, trial.InTurn("-CLUSTERDOWN no leader\r\n", say0, say1, "-NOSEM no such semaphore\r\n", say1))
	s := open(t, trial.Patience, a.Addr())

	got, err := s.Read(t.Context(), []any{"A"}, []any{"B"}, []any{"C"})

	// The first pipeline ends at the CLUSTERDOWN; its other replies are not used.
	if err != nil || fmt.Sprint(got) != "[NOSEM no such semaphore 1 1]" {
		t.Errorf("got %v, %v, want a refusal and two values", got, err)
	}
}

func TestReachTellsWhoAnswers(t *testing.T) {
	a := trial.Serve(t, always("+PONG\r\n"))
	s := open(t, trial.Patience, a.Addr(), refusing(t))

	got := s.Reach(t.Context())

	if got[0].Err != nil || got[1].Err == nil {
		t.Errorf("got %v, want that the first answers and the second does not", got)
	}
}
