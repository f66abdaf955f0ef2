package scenes

import (
	"context"
	"net/http"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// clockAhead: between the observer and the API server is a proxy that changes the answers' Date, so that the node is ahead
// of the server. The clock of a machine is not for a test to change.
func clockAhead() Scene {
	const ahead = 2 * time.Minute
	var (
		other *Observer
		proxy *stock.Proxy
	)
	return Scene{
		Name: "node's clock 2 minutes ahead", What: "a proxy before the API server sets the Date of each answer back",
		Expect:   []Drift{{Kind: audit.ClockSkew}},
		Observer: func(*Stage) *Observer { return other },
		Break: func(ctx context.Context, s *Stage) error {
			var err error
			proxy, err = stock.NewProxy(s.Node.API, func(r *http.Response) {
				r.Header.Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
			})
			if err != nil {
				return err
			}
			kubeconfig := s.kubeconfig + ".proxy"
			if err := proxy.WriteKubeconfig(kubeconfig, s.token); err != nil {
				return err
			}
			other, err = s.Another(ctx, "ahead", kubeconfig, "")
			return err
		},
		Mend: func(context.Context, *Stage) error {
			other.Close()
			proxy.Close()
			return nil
		},
	}
}
