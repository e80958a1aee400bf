package saga_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// SEMANTICS 3.1
func TestIDOfAStartedSagaIsItsFirstByOrTheEventID(t *testing.T) {
	type event struct{ A, B string }
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{}, story(t, "story", saga.Start(func(*Story, event) {}, saga.By("a"), saga.By("b"))))
		require.NoError(t, s.Handle(t.Context(), event{A: "1", B: "2"}))
		require.NoError(t, s.Handle(t.Context(), event{B: "3"}, saga.WithID("e")))
		s.instance("1")
		s.instance("e")
		require.ErrorContains(t, s.Handle(t.Context(), event{}), "none of a, b has a value") // 3.12
		require.Equal(t, 2, s.rows("{instance}"))
	})
}

// SEMANTICS 3.3, 3.4
func TestEverySagaThatHoldsAnyPairMatchesOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Add("tag", "x"); sc.Add("tag", "y"); return nil })
		s.begin("2", func(sc Scene) error { sc.Add("tag", "y"); return nil })
		s.begin("3", func(sc Scene) error { sc.Add("other", "x"); return nil }) // 3.10: name and value
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1", Tag: []string{"x", "y", "", "x"}}))
		require.Equal(t, 2, s.count("1"))
		require.Equal(t, 2, s.count("2"))
		require.Equal(t, 1, s.count("3"))
	})
}

// SEMANTICS 3.15
func TestAssociationsChangeWithTheState(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		tagged := func(tag string) { require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{tag}})) }
		s.begin("1", func(sc Scene) error {
			sc.Add("tag", "kept")
			sc.Add("tag", "kept")
			sc.Add("tag", "undone")
			sc.Remove("tag", "undone")
			sc.Remove("tag", "never held")
			return nil
		})
		tagged("kept")
		tagged("undone")
		require.Equal(t, 2, s.count("1"))
		require.Error(t, s.Handle(t.Context(), Next{ID: "1", Do: func(sc Scene) error { sc.Remove("tag", "kept"); return errors.New("no") }}))
		tagged("kept")
		require.Equal(t, 3, s.count("1"))
		s.next("1", func(sc Scene) error {
			sc.Remove("tag", "kept")
			for _, odd := range []string{"", "\x00", "\xff", strings.Repeat("x", 5000)} {
				sc.Remove("tag", odd)
				sc.Remove(odd, "x")
			}
			return nil
		})
		tagged("kept")
		require.Equal(t, 4, s.count("1"))
	})
}

// Removing what cannot be stored removes nothing that resembles it.
func TestRemovingBrokenTextLeavesTheReplacementCharacterAlone(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Add("tag", "�"); return nil })
		s.next("1", func(sc Scene) error { sc.Remove("tag", "\xff"); return nil })
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"�"}}))
		require.Equal(t, 3, s.count("1"))
	})
}

// SEMANTICS 3.15
func TestPairThatStartedASagaIsExclusiveAndMayBeGivenUp(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		s.next("1", func(sc Scene) error { sc.Remove("id", "1"); sc.Add("tag", "1"); return nil })
		s.next("1", nil)
		require.Equal(t, 2, s.count("1"))
		s.begin("1", nil) // the id is taken still
		require.Equal(t, 3, s.count("1"))
		require.Equal(t, 1, s.rows("{instance}"))
		s.begin("2", func(sc Scene) error { sc.Add("id", "3"); return nil })
		s.begin("3", nil) // found, not started
		require.Equal(t, 2, s.count("2"))
		require.Equal(t, 2, s.rows("{instance}"))
	})
}

// SEMANTICS 3.13
func TestMetadataIsReadWhereThePayloadHasNoValue(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.NoError(t, s.Handle(t.Context(), Begin{}, saga.WithMetadata(saga.Metadata{"id": "1"})))
		require.NoError(t, s.Handle(t.Context(), Next{}, saga.WithMetadata(saga.Metadata{"id": "1"})))
		require.NoError(t, s.Handle(t.Context(), Next{ID: "other"}, saga.WithMetadata(saga.Metadata{"id": "1"})))
		require.Equal(t, 2, s.count("1"))
		require.ErrorContains(t, s.Handle(t.Context(), Next{}, saga.WithMetadata(saga.Metadata{"id": "\x00"})), "NUL")
		require.ErrorContains(t, s.Handle(t.Context(), Begin{}, saga.WithMetadata(saga.Metadata{"$id": "2", "id": ""})), "none of id has a value")
	})
}

// SEMANTICS 3.12
func TestAssociationValuesThatCannotBeStoredFail(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for value, want := range map[string]string{"\x00": "NUL", "\xff": "not UTF-8", strings.Repeat("é", 513): "1026 bytes is longer than 1024"} {
			err := s.Handle(t.Context(), Begin{ID: value})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `property "id"`)
			require.ErrorContains(t, s.Handle(t.Context(), Next{ID: value}), want)
			require.ErrorContains(t, s.Handle(t.Context(), Next{ID: "x", Tag: []string{"fine", value}}), want)
		}
		s.empty()
	})
}

// SEMANTICS 3.11: byte for byte.
func TestValuesAreComparedByteForByte(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		ids := []string{"a", "A", "a ", " a", "ä", "a\u0308", "NULL", "null", "0", "00", "1e3", "{}", "[\"a\"]", "\\", "'", "\"", "%", "_", "?", "$1", "\t", "\n", "\u2028", "�", "𝄞", "{instance}"}
		for _, id := range ids {
			s.begin(id, nil)
		}
		require.Equal(t, len(ids), s.rows("{instance}"))
		for _, id := range ids {
			s.next(id, nil)
			require.Equal(t, 2, s.count(id), id)
		}
	})
}

// The longest of everything fits every index, incompressible as it may be.
func TestLongestNamesAndValuesAreStored(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		long := func(n int, seed byte) string { // as random as text can be
			b, x := make([]byte, n), uint32(seed)+1
			for i := range b {
				x = x*1664525 + 1013904223
				b[i] = '!' + byte(x>>24)%94
			}
			return string(b)
		}
		name := long(255, 1)
		s := newStage(t, db, saga.Config{}, story(t, name, saga.OnDeadline(long(255, 2), (*Story).OnTimer)))
		id := long(1024, 3)
		require.NoError(t, s.Handle(t.Context(), Begin{ID: id, Do: func(sc Scene) error {
			sc.Add(long(255, 4), long(1024, 5))
			sc.Schedule(long(255, 2), 0)
			return nil
		}}, saga.WithID(long(1024, 6))))
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
	})
}
