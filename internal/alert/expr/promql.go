package expr

import "regexp"

// promql is what expressions of Prometheus have and those of CEL do not: label matchers, ranges, aggregations and functions over time.
var promql = regexp.MustCompile(`\w\s*\{[^}]*(?:=~|!~|!=|=)\s*"|\[\d+[smhdwy][^\]]*\]|\b(?:sum|avg|min|max|count|topk|quantile)\s*(?:by\s*\([^)]*\)\s*|without\s*\([^)]*\)\s*)?\(|\b(?:rate|irate|increase|delta|absent|changes|\w+_over_time|histogram_quantile|label_replace)\s*\(|\b(?:unless|ignoring|group_left|group_right)\b`)

// looksLikePromQL reports whether an expression that is no CEL is one of Prometheus.
func looksLikePromQL(source string) bool { return promql.MatchString(source) }

const notPromQL = "this looks like PromQL; the expression of a rule is CEL about one pod, container or node, such as container.restarts > 3; the history is in functions such as durationIn()"
