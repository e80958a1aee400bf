package saga_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// golden holds a text against a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got+"\n")
}

type ledger interface{ Book() }

type (
	textOnly struct{}
	oneWay   struct{ At fmt.Stringer }
	badState struct {
		C  chan int
		M  map[[2]int]string
		F  func() `json:"-"`
		In struct{ C complex128 }
	}
	floats struct{ F float64 }
	secret struct {
		Shown  string
		hidden string
		spare  string `json:"-"`
		_      int
		User   url.Userinfo
		Inner  struct{ deep int }
		base
		word
		Time time.Time
	}
	base struct{ Own, own int }
	word string
)

var _ = secret{hidden: "", spare: "", base: base{own: 0}, word: word("")} // nothing else writes them

func (textOnly) MarshalText() ([]byte, error) { return nil, nil }

func (s *Story) OnOther(Next, *script, ledger) {}
func misfit(*Parcel, Begin)                    {}
func twoEvents(*Story, Begin, Next)            {}
func secretPayload(*Story, secret)             {}
func noEvent(*Story, saga.Commands)            {}
func results(*Story, Begin) (int, error)       { return 0, nil }
func variadic(*Story, Begin, ...string)        {}
func anything(*Story, Begin, any)              {}
func fails(*Story, Begin, error)               {}
func channel(*Story, chan int)                 {}
func firing(*Story, Begin, saga.Firing)        {}
func metadata(*Story, saga.Metadata)           {}
func oneWayPayload(*Story, oneWay)             {}
func textPayload(*Story, textOnly)             {}
func byFloat(*Story, floats)                   {}
func byValue(Story, Begin)                     {}
func byPointer(*Story, *Begin, *script)        {}

func (s Story) OnCopy(Begin) {}

// SEMANTICS 1.1, 1.2, 1.4, 3.2, 3.3, 3.11
func TestCase0122DefinitionErrorsAreReportedTogether(t *testing.T) {
	_, err := saga.Define[Story]("story\n",
		saga.Start((*Story).OnBegin),
		saga.On((*Story).OnNext, saga.By("id"), saga.Again()),
		saga.On((*Story).OnNext, saga.By("")),
		saga.On((*Story).OnNext, saga.By("id")),
		saga.On((*Story).OnOther, saga.By("id")),
		saga.On(misfit, saga.By("id")),
		saga.On(twoEvents, saga.By("id")),
		saga.On(noEvent, saga.By("id")),
		saga.On(results, saga.By("id")),
		saga.On(variadic, saga.By("id")),
		saga.On(anything, saga.By("id")),
		saga.On(fails, saga.By("id")),
		saga.On(channel, saga.By("id")),
		saga.On(firing, saga.By("id")),
		saga.On(byFloat, saga.By("f")),
		saga.On(byFloat, saga.By("f//g")),
		saga.On(byValue, saga.By("id")),
		saga.On((*Story).OnCopy, saga.By("id")),
		saga.On(byPointer, saga.By("id")),
		saga.On((&Story{}).OnBegin, saga.By("id")),
		saga.On(nil, saga.By("id")),
		saga.On(7, saga.By("id")),
		saga.On((func(*Story, Begin))(nil), saga.By("id")),
		saga.OnFunc[Story, Begin](nil, saga.By("id")),
		saga.OnFunc(func(context.Context, *Story, *Begin, saga.Injected) error { return nil }, saga.By("id")),
		saga.OnFunc(func(context.Context, *Story, saga.Firing, saga.Injected) error { return nil }, saga.By("id")),
		saga.OnFunc(func(context.Context, *Parcel, Begin, saga.Injected) error { return nil }),
		saga.OnDeadline("t", (*Story).OnTimer),
		saga.OnDeadline("t", (*Story).OnParcel, saga.By("id"), saga.Again()),
		saga.OnDeadline("", (*Story).OnTimer),
		saga.OnDeadline("m", metadata),
		saga.OnDeadline("one way", oneWayPayload),
		saga.OnDeadline("text", textPayload),
		saga.OnDeadline("secret", secretPayload),
		saga.OnDeadline("\xff", (*Story).OnTimer),
		saga.OnDeadline(strings.Repeat("x", 256), (*Story).OnTimer),
		saga.Named[Story]("another name", "fine", ""),
	)
	require.Error(t, err)
	golden(t, "definition-errors.txt", err.Error())
}

func TestStateThatCannotBeStoredIsADefinitionError(t *testing.T) {
	var all []string
	for _, define := range []func() (*saga.Definition, error){
		func() (*saga.Definition, error) { return saga.Define[badState]("bad") },
		func() (*saga.Definition, error) { return saga.Define[oneWay]("one-way") },
		func() (*saga.Definition, error) { return saga.Define[textOnly]("text-only") },
		func() (*saga.Definition, error) { return saga.Define[*Story]("pointer") },
		func() (*saga.Definition, error) { return saga.Define[secret]("secret") },
		func() (*saga.Definition, error) { return saga.Define[string]("") },
		func() (*saga.Definition, error) { return saga.Define[Story]("nothing") },
	} {
		d, err := define()
		require.Error(t, err)
		require.Nil(t, d)
		all = append(all, err.Error())
	}
	golden(t, "state-errors.txt", strings.Join(all, "\n"))
	require.Panics(t, func() { saga.MustDefine[string]("x") })
}

// SEMANTICS 1.1, 1.3
func TestEngineErrorsAreReportedTogether(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "sqlite"))
	type Parcel struct{}
	needy, err := saga.Define[Story]("needy", saga.On((*Story).OnOther, saga.By("id")), saga.Named[Story]("needy", "story"))
	require.NoError(t, err)
	other, err := saga.Define[Parcel]("story", saga.Start(func(*Parcel, Begin) {}, saga.By("id")))
	require.NoError(t, err)
	_, err = saga.New(db, saga.Config{
		Workers: -1, ValueLimit: 4096, PayloadLimit: -1, InstanceRetention: -1, EventRetention: -1, MeasureEvery: -1,
		Names: []saga.Naming{
			saga.Named[Note]("note"), saga.Named[Note]("memo"), saga.Named[DebitAccount]("x"), saga.Named[CreditAccount]("y", "x"),
			saga.Named[Parcel]("saga_test.Parcel"), saga.Named[ReverseDebit](""),
		},
	}, story(t, "story"), needy, story(t, "story"), other)
	require.Error(t, err)
	golden(t, "engine-errors.txt", err.Error())
}

// SEMANTICS 1.3
func TestServicesAreProvidedByTypeOrInterface(t *testing.T) {
	provide := saga.Services(nil, 7, &Parcel{Text: "p"}, book{}, json.Number("1"))
	v, ok := provide(reflect.TypeFor[*Parcel]())
	require.True(t, ok)
	require.Equal(t, &Parcel{Text: "p"}, v)
	v, ok = provide(reflect.TypeFor[ledger]())
	require.True(t, ok)
	require.Equal(t, book{}, v)
	_, ok = provide(reflect.TypeFor[*Story]())
	require.False(t, ok)
}

type book struct{}

func (book) Book() {}

func TestDefinitionTellsItsNameDeadlinesAndServices(t *testing.T) {
	d := story(t, "story", saga.On(func(*Story, Parcel, *script, ledger) {}, saga.By("text")))
	require.Equal(t, "story", d.Name())
	require.Equal(t, []string{"parcel", "t", "u", "v"}, d.Deadlines())
	require.ElementsMatch(t, []reflect.Type{reflect.TypeFor[*script](), reflect.TypeFor[ledger]()}, d.Services())
}

// SEMANTICS 1.2: any order, any of them.
func TestCase0123ParametersStandInAnyOrder(t *testing.T) {
	schematest.Each(t, parametersInAnyOrder)
}

func parametersInAnyOrder(t *testing.T, db *schema.DB) {
	calls := 0
	d, err := saga.Define[Story]("story",
		saga.Start(func(s *Story, tx saga.Tx, l ledger, e Begin, p *Parcel, c saga.Commands) error {
			require.NotNil(t, tx)
			require.Equal(t, book{}, l)
			require.Equal(t, "settings", p.Text)
			require.Equal(t, "1", e.ID)
			calls++
			return nil
		}, saga.By("id")),
		saga.On(func(s *Story, e Begin) { calls++ }, saga.By("id")),
		saga.OnFunc(func(ctx context.Context, s *Story, e Next, in saga.Injected) error {
			require.Equal(t, "v", in.Metadata["k"])
			in.Deadlines.Schedule("t", 0)
			in.Commands.Send(Note{})
			in.Associations.Add("tag", "x")
			calls++
			return ctx.Err()
		}, saga.By("id"), saga.By("tag")),
		saga.OnDeadline("t", func(s *Story, f saga.Firing, l saga.Lifecycle, ctx context.Context, p *Parcel) { l.End(); calls++ }),
	)
	require.NoError(t, err)
	e := newEngine(t, db, saga.Config{Service: saga.Services(book{}, &Parcel{Text: "settings"})}, d)
	require.NoError(t, e.Handle(t.Context(), Begin{ID: "1"}))
	require.NoError(t, e.Handle(t.Context(), &Begin{ID: "1"}))
	require.NoError(t, e.Handle(t.Context(), Next{ID: "1"}, saga.WithMetadata(saga.Metadata{"k": "v"})))
	_, errs := sweep(t, db, e)
	require.Empty(t, errs)
	require.Equal(t, 4, calls)
	got, err := e.Instance(t.Context(), key("1"))
	require.NoError(t, err)
	require.True(t, got.Ended)
}
