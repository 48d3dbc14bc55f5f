package workload_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

func TestInvalid(t *testing.T) {
	if err := workload.Invalid(nil); err != nil {
		t.Errorf("no violation is %v", err)
	}
	err := workload.Invalid([]workload.Violation{{Field: "a", Token: "first", Message: "x"}, {Field: "b", Token: "second", Message: "y"}})
	var e *workload.Error
	if !errors.As(err, &e) || e.Kind != workload.InvalidArgument || e.Token != "first" || len(e.Violations) != 2 {
		t.Errorf("it is %#v", err)
	}
	if want := "first: a: x; b: y"; err.Error() != want {
		t.Errorf("it reads %q", err)
	}
}

func TestCauseIsNotPartOfTheText(t *testing.T) {
	err := workload.Errorf(workload.Unavailable, "token", "message %d", 1).Because(io.EOF).Retry(time.Second)
	if err.Error() != "token: message 1" || !errors.Is(err, io.EOF) || err.RetryAfter != time.Second {
		t.Errorf("it is %#v", err)
	}
}

func TestMainContainer(t *testing.T) {
	state := workload.State{Containers: []workload.ContainerState{{Name: "a", Role: workload.RoleInit}, {Name: "b", Role: workload.RoleMain}}}
	if main := state.Main(); main == nil || main.Name != "b" {
		t.Errorf("main is %v", main)
	}
	if main := new(workload.State).Main(); main != nil {
		t.Errorf("main of nothing is %v", main)
	}
}
