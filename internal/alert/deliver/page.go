package deliver

import (
	"net/url"
	"strings"

	"github.com/statusd/statusd/internal/alert"
)

// Page is where the page of a node shows what an alert is about, empty without an external URL.
func Page(a *alert.Alert, externalURL string) string {
	if externalURL == "" {
		return ""
	}
	base := strings.TrimRight(externalURL, "/") + "/#/"
	if a.Pod == "" {
		return base + "node"
	}
	return base + "pods/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Pod)
}
