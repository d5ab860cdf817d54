package processor_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"

	"github.com/spanqueue/spanqueue/processor"
)

// A service that drains at the first signal and ends the handlers that are left at the second.
func ExampleProcessor_Shutdown() {
	var p *processor.Processor // made with New

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	go func() {
		<-signals
		log.Print("finishing what has begun; interrupt again to end it")
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-signals
			cancel()
		}()
		// The error is that of ctx when the second signal came; Run returns what else there is to say.
		_ = p.Shutdown(ctx)
	}()

	err := p.Run(context.Background())
	var abandoned *processor.AbandonedError
	if errors.As(err, &abandoned) {
		log.Printf("%d handlers did not return; their messages come again", len(abandoned.Deliveries))
	} else if err != nil {
		log.Fatal(err)
	}
}
