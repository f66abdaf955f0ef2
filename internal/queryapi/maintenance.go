package queryapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/view"
)

// Maintainer is a [view.GuardSource] that can be kept from restarting anything.
type Maintainer interface {
	// Maintenance lasts until a time; a time in the past ends it.
	Maintenance(until time.Time) error
}

// Maintenance is until when the guard restarts nothing.
type Maintenance struct {
	Until time.Time `json:"until"`
}

// maxMaintenance keeps a slip of the keyboard from switching the guard off for years.
const maxMaintenance = 7 * 24 * time.Hour

func (s *Server) setMaintenance(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	maintainer, ok := s.options.Guard.(Maintainer)
	if !ok {
		absent(w, "no kubelet is guarded on this node")
		return
	}
	var m Maintenance
	if !readBody(w, r, "maintenance", &m) {
		return
	}
	if time.Until(m.Until) > maxMaintenance {
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "maintenance: until %s is more than a week", m.Until.Format(time.RFC3339))
		return
	}
	if err := maintainer.Maintenance(m.Until); err != nil {
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "maintenance: %v", err)
		return
	}
	answer(w, http.StatusOK, view.GuardReport(s.options.Guard))
}

// Maintenance keeps the guard from restarting anything until a time; a time in the past ends it. The
// server accepts it on its Unix socket only.
func (c *Client) Maintenance(ctx context.Context, until time.Time) (report guard.Report, err error) {
	data, err := json.Marshal(Maintenance{until})
	if err != nil {
		return report, fmt.Errorf("api: encode the maintenance: %w", err)
	}
	return report, c.do(ctx, http.MethodPost, "/apis/v1/guard/maintenance", bytes.NewReader(data), &report)
}
