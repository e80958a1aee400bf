package config_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/norn-go/norn/config"
)

func write(yaml string) (name string, remove func()) {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		log.Fatal(err)
	}
	name = filepath.Join(dir, "app.yaml")
	if err := os.WriteFile(name, []byte(yaml), 0o600); err != nil {
		log.Fatal(err)
	}
	return name, func() { _ = os.RemoveAll(dir) }
}

func ExampleLoad() {
	name, remove := write(`
saga:
  workers: 16
  deadline:
    polling: {interval: 10s}
`)
	defer remove()
	source, err := config.Load(name, config.Override("database.url", "postgres://app:secret@db.example/shop"))
	if err != nil {
		log.Fatal(err)
	}
	settings, err := source.Norn()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.Workers, settings.Deadline.Polling.Interval, settings.Deadline.LeaseTTL)
	fmt.Println(settings.Database)
	// Output:
	// 16 10s 2m0s
	// [url=postgres://app:xxxxx@db.example/shop max-open=0 prepare=true]
}

func ExampleSource_Norn() {
	source, err := config.Load("",
		config.Override("saga.deadline.lease-ttl", "30"),
		config.Override("saga.wokers", "8"),
		config.Override("saga.clock", "sundial"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = source.Norn()
	fmt.Println(err)
	// Output:
	// config: saga.wokers (given by the program): is no setting; did you mean saga.workers?
	// config: saga.deadline.lease-ttl (given by the program): got "30", want duration with a unit, at least 1ms: it needs a unit, for example 30s
	// config: saga.clock (given by the program): got "sundial", want text, database or process
}

type PaymentSettings struct {
	Timeout    time.Duration `default:"30m"`
	MaxRetries int           `default:"3"`
	Gateway    struct{ URL string }
}

func ExampleSection() {
	name, remove := write(`
payment:
  timeout: 45m
  gateway: {url: https://pay.example}
`)
	defer remove()
	source, err := config.Load(name, config.Override("payment.max-retries", "5"))
	if err != nil {
		log.Fatal(err)
	}
	provide := config.Section[PaymentSettings]("payment") // in an application: fx.Provide(provide)
	payment, err := provide(source)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(payment.Timeout, payment.MaxRetries, payment.Gateway.URL)
	// Output: 45m0s 5 https://pay.example
}

func ExampleConfig_Effective() {
	for _, attr := range config.Default().Effective()[:5] {
		fmt.Println(attr)
	}
	// Output:
	// saga.deadline.enabled=true
	// saga.deadline.polling.enabled=true
	// saga.deadline.polling.interval=30s
	// saga.deadline.polling.batch-size=100
	// saga.deadline.lease-ttl=2m
}
