package sagatest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

// Clock is a service that handlers inject.
type Clock interface{ Zone() string }

type london struct{}

func (london) Zone() string { return "London" }

// Mirror is a saga type beside the tested one.
type Mirror struct{ Seen string }

func (m *Mirror) OnBegin(e Begin, c saga.Commands) {
	m.Seen = e.ID
	c.Send(Order{"mirrored"})
}

func TestServicesAreInjectedByType(t *testing.T) {
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1"})
		f.ExpectState(Probe{Text: "London"})
	}, saga.Start(func(p *Probe, _ Begin, c Clock) { p.Text = c.Zone() }, saga.By("id")), sagatest.Provide(london{}))
}

type counting struct{ made int }

func (c *counting) Zone() string { return strconv.Itoa(c.made) }

func TestServicesAreMadeAnewForEachNode(t *testing.T) {
	made, names := 0, []string{}
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1"})
		f.WhenRestarted()
		f.When(Begin{ID: "2"})
		names = append(names, f.Saga("1").State().Text, f.Saga("2").State().Text)
	}, saga.Start(func(p *Probe, _ Begin, c Clock) { p.Text = c.Zone() }, saga.By("id")),
		sagatest.Provide(func() *counting { made++; return &counting{made} }), sagatest.OnBoth())
	require.Equal(t, []string{"1", "2", "3", "4"}, names)
}

func TestOtherSagaTypesRunBesideTheTestedOne(t *testing.T) {
	mirror := saga.MustDefine[Mirror]("mirror", saga.Start((*Mirror).OnBegin, saga.By("id")))
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1"})
		f.ExpectNoCommands() // the other's are not ours
		f.ExpectOpen()
		_, err := f.Engine().Instance(f.Context(), saga.Key{Type: "mirror", ID: "1"})
		require.NoError(f.T(), err)
	}, probe(nil, mirror)...)
}

func TestADefinitionCanBeTheTestedOne(t *testing.T) {
	mirror := saga.MustDefine[Mirror]("mirror", saga.Start((*Mirror).OnBegin, saga.By("id")))
	sagatest.Test(t, "mirror", func(f *sagatest.Fixture[Mirror]) {
		f.GivenState("1", Mirror{"given"})
		f.When(Begin{ID: "2"})
		f.Saga("1").ExpectState(Mirror{"given"})
		f.Saga("2").ExpectState(Mirror{"2"})
	}, mirror)
}

func TestSagaTypesOfAnFxModuleAreTestedAsTheyAreWired(t *testing.T) {
	module := fx.Module("shop",
		fxmodule.Saga[Mirror]("mirror", saga.Start((*Mirror).OnBegin, saga.By("id"))),
		fxmodule.Names(saga.Named[Order]("shop.order")),
		fx.Provide(func() Clock { panic("nothing of the module runs") }),
		fx.Invoke(func(Clock) {}))
	sagatest.Test(t, "mirror", func(f *sagatest.Fixture[Mirror]) {
		f.When(Begin{ID: "1"})
		f.ExpectCommands(Order{"mirrored"})
		var stored string
		require.NoError(f.T(), f.DB().Get(f.Context(), &stored, "SELECT type FROM {command}"))
		require.Equal(f.T(), "shop.order", stored)
	}, module, sagatest.OnBoth())
}

func TestTheStateTypeMustBeThatOfTheSagaType(t *testing.T) {
	mirror := saga.MustDefine[Mirror]("probe", saga.Start((*Mirror).OnBegin, saga.By("id")))
	requireFails(t, "sagatest: probe is the saga type of sagatest_test.Mirror, not of sagatest_test.Probe", func(*sagatest.Fixture[Probe]) {}, mirror)
	own := saga.MustDefine[Probe]("probe", saga.Start((*Probe).OnBegin, saga.By("id")))
	requireFails(t, "sagatest: nothing registered defines probe: there is mirror", func(*sagatest.Fixture[Probe]) {},
		saga.MustDefine[Mirror]("mirror", saga.Start((*Mirror).OnBegin, saga.By("id"))))
	requireFails(t, "defined twice", func(*sagatest.Fixture[Probe]) {}, own, saga.Start((*Probe).OnBegin, saga.By("id")))
}

func TestNamesOfStoredTypesApply(t *testing.T) {
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); return nil }})
		f.ExpectCommands(Note{"a"})
		var stored string
		require.NoError(f.T(), f.DB().Get(f.Context(), &stored, "SELECT type FROM {command}"))
		require.Equal(f.T(), "probe.note", stored)
	}, probe(nil, saga.Named[Note]("probe.note"))...)
}

func TestTheTestStartsAtTheGivenTime(t *testing.T) {
	at := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		require.Equal(f.T(), at, f.Now().UTC())
		require.Equal(f.T(), "sqlite", f.DB().Dialect())
	}, probe(nil, sagatest.StartAt(at))...)
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		require.Equal(f.T(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), f.Now().UTC())
		require.Equal(f.T(), "postgres", f.DB().Dialect())
	}, probe(nil, sagatest.On(sagatest.Postgres))...)
}
