package schema

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlowAnswerDoesNotMoveTheClock(t *testing.T) {
	before := time.Now()
	c := NewClock(nil)
	there := before.Add(5 * time.Second)

	require.Zero(t, c.correct(before, there, 6*time.Second))
	require.Equal(t, 5*time.Second, c.correct(before, there.Add(time.Millisecond), 2*time.Millisecond))
	require.Equal(t, 5*time.Second, c.correct(before, there.Add(time.Second), 6*time.Second))
	require.Equal(t, time.Second, c.correct(before, before.Add(time.Second+time.Millisecond), 2*time.Millisecond))
}
