package deliver

import (
	"net/url"
	"strings"

	"github.com/statusd/statusd/internal/alert"
)

// Page is the URL of an alert's subject on the node's page, or "" without an external URL.
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
