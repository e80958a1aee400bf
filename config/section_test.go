package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

type route struct {
	Name    string
	Timeout time.Duration `default:"1s"`
}

func (r route) Validate() error {
	if r.Name == "bad" {
		return errors.New("bad is no route")
	}
	return nil
}

type common struct {
	Region string `default:"eu"`
}

type gateway struct {
	URL     string
	APIKey  string `config:"key"`
	Retries uint8  `mapstructure:"tries" default:"2"`
}

func (g *gateway) Validate() error {
	if g.URL == "none" {
		return errors.New("url: none is no gateway")
	}
	return nil
}

type payment struct {
	common
	MaxRetries int           `default:"3"`
	Timeout    time.Duration `default:"30m"`
	Enabled    bool          `default:"true"`
	Share      float64
	Limit      *int
	Gateway    gateway
	Currencies []string `default:"EUR, USD"`
	Rates      map[string]float64
	Routes     []route
	Peer       netip.Addr
	Since      time.Time
	Internal   chan int `config:"-"`
	hidden     int
}

func (p *payment) Validate() error {
	if p.MaxRetries > 10 {
		return fmt.Errorf("max-retries: got %d, want at most 10", p.MaxRetries)
	}
	return nil
}

var paymentOf = config.Section[payment]("Payment")

func TestSectionHasItsDefaultsWithoutAFile(t *testing.T) {
	p, err := paymentOf(without(t))
	require.NoError(t, err)
	require.Equal(t, &payment{
		common: common{Region: "eu"}, MaxRetries: 3, Timeout: 30 * time.Minute, Enabled: true,
		Gateway: gateway{Retries: 2}, Currencies: []string{"EUR", "USD"},
	}, p)
	require.Zero(t, p.hidden)
}

const paymentYAML = `
PAYMENT:
  maX-retries: 5
  Region: us
  timeout: 1h
  enabled: false
  share: 1
  limit: 0
  gateway: {url: https://pay.example, key: k1, tries: 9}
  currencies: [CHF]
  rates: {EUR: 1.5, Usd: 2}
  routes: [{name: a, Timeout: 2s}, {name: b}]
  peer: 192.0.2.1
  since: 2026-01-02
`

func TestSectionIsReadFromTheFile(t *testing.T) {
	p, err := paymentOf(load(t, paymentYAML))
	require.NoError(t, err)
	require.Equal(t, &payment{
		common: common{Region: "us"}, MaxRetries: 5, Timeout: time.Hour, Share: 1, Limit: new(int),
		Gateway: gateway{URL: "https://pay.example", APIKey: "k1", Retries: 9}, Currencies: []string{"CHF"},
		Rates:  map[string]float64{"EUR": 1.5, "Usd": 2},
		Routes: []route{{"a", 2 * time.Second}, {"b", time.Second}},
		Peer:   netip.MustParseAddr("192.0.2.1"), Since: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}, p)
}

func TestP75EveryFieldOfASectionIsOverriddenByTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"PAYMENT": "in the way", "PAYMENT_GATEWAY": "in the way", "PAYMENT_MAX_RETRIES": "6", "PAYMENT_REGION": "ap",
		"PAYMENT_TIMEOUT": "2h", "PAYMENT_ENABLED": "false", "PAYMENT_SHARE": "0.5", "PAYMENT_LIMIT": "7",
		"PAYMENT_GATEWAY_URL": "https://env.example", "PAYMENT_GATEWAY_KEY": "k2", "PAYMENT_GATEWAY_TRIES": "4",
		"PAYMENT_CURRENCIES": "GBP, JPY", "PAYMENT_PEER": "192.0.2.2", "PAYMENT_SINCE": "2026-03-04T05:06:07Z",
	} {
		t.Setenv(name, value)
	}
	seven := 7
	want := payment{
		common: common{Region: "ap"}, MaxRetries: 6, Timeout: 2 * time.Hour, Share: 0.5, Limit: &seven,
		Gateway: gateway{URL: "https://env.example", APIKey: "k2", Retries: 4}, Currencies: []string{"GBP", "JPY"},
		Peer: netip.MustParseAddr("192.0.2.2"), Since: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
	p, err := paymentOf(without(t))
	require.NoError(t, err)
	require.Equal(t, &want, p)

	p, err = paymentOf(load(t, paymentYAML))
	require.NoError(t, err)
	want.Rates, want.Routes = p.Rates, p.Routes
	require.Len(t, want.Rates, 2)
	require.Equal(t, &want, p)
}

func TestAllMistakesOfASectionAreReportedTogether(t *testing.T) {
	t.Setenv("PAYMENT_RATES", "1")
	_, err := paymentOf(load(t, `
payment:
  maxRetries: 5
  max-retries: 11
  timeout: 30
  enabled: yes
  share: .nan
  limit: "3"
  region: 12
  gateway: {url: none, tries: 256, extra: 1}
  currencies: EUR
  routes: [{nam: a, timeout: 5}, b, {name: bad}]
  peer: nowhere
`))
	require.Error(t, err)
	for _, want := range []string{
		"payment.maxretries (F): is no setting; did you mean payment.max-retries?",
		"payment.timeout (F): got 30, want duration with a unit: it needs a unit, for example 30s",
		`payment.enabled (F): got "yes", want true or false`,
		"payment.share (F): got NaN, want number: it is out of range",
		`payment.limit (F): got "3", want whole number: remove the quotes`,
		"payment.region (F): got 12, want text: put it in quotes",
		"payment.gateway.tries (F): got 256, want whole number, not negative: it is out of range",
		"payment.gateway.extra (F): is no setting",
		`payment.currencies (F): got "EUR", want list`,
		"payment.routes[0].nam (F): is no setting; did you mean name?",
		"payment.routes[0].timeout (F): got 5, want duration with a unit: it needs a unit, for example 30s",
		`payment.routes[1] (F): got "b", want map; it is set in the file only`,
		"payment.routes[2] (F): bad is no route",
		`payment.peer (F): got "nowhere", want text of a netip.Addr: ParseAddr`,
		`payment.rates (PAYMENT_RATES): got "1", want map; it is set in the file only`,
		"payment.gateway: url: none is no gateway",
		"payment: max-retries: got 11, want at most 10",
	} {
		require.Regexp(t, "(?m)^config: "+quoteFile(want), err.Error())
	}
}

func TestP74KeyOfASectionInTwoSpellingsIsRefused(t *testing.T) {
	_, err := paymentOf(load(t, "payment: {share: 1, Share: 2}"))
	require.ErrorContains(t, err, "is written twice, as payment.Share and as payment.share; remove one")
}

func TestTypeThatCannotBeReadIsRefused(t *testing.T) {
	type broken struct {
		C     chan int
		I     any
		P     *route
		M     map[int]string
		A, B  int `config:"same"`
		Bad   int `default:"many"`
		Chans []struct{ C chan int }
	}
	_, err := config.Section[broken]("broken")(without(t))
	require.Error(t, err)
	for _, want := range []string{
		"broken.c: no setting can be of the type chan int; leave the field out with `config:\"-\"`",
		"broken.i: no setting can be of the type interface {};",
		"broken.p: no setting can be of the type *config_test.route;",
		"broken.m: no setting can be of the type map[int]string;",
		"broken.chans: no setting can be of the type chan int;",
		"broken.same: has the environment variable BROKEN_SAME in common with broken.same; rename one field",
		`broken.bad (the default in the struct): got "many", want whole number`,
	} {
		require.ErrorContains(t, err, "config: "+want)
	}
	_, err = config.Section[int]("broken")(without(t))
	require.EqualError(t, err, "config: section broken: got the type int, want a struct")
}

func TestSectionOfNornsOwnKeysIsRefused(t *testing.T) {
	for _, key := range []string{"saga", "Saga.deadline", "database"} {
		_, err := config.Section[payment](key)(without(t))
		require.ErrorContains(t, err, "norn's own, want another key", key)
	}
	for _, key := range []string{"", ".", "a..b", "a."} {
		_, err := config.Section[payment](key)(without(t))
		require.ErrorContains(t, err, "want a key such as payment", key)
	}
}

func TestNestedSectionHasItsOwnKey(t *testing.T) {
	t.Setenv("PAYMENT_GATEWAY_TRIES", "5")
	g, err := config.Section[gateway]("payment.gateway")(load(t, paymentYAML))
	require.NoError(t, err)
	require.Equal(t, &gateway{URL: "https://pay.example", APIKey: "k1", Retries: 5}, g)
}

func TestValueThatIsNotThereIsRefused(t *testing.T) {
	_, err := paymentOf(load(t, "payment: {share: , gateway: , currencies: [~]}"))
	require.ErrorContains(t, err, "got nothing, want number; or remove the key")
	require.ErrorContains(t, err, "got nothing, want text")
	require.NotContains(t, err.Error(), "payment.gateway")
}
