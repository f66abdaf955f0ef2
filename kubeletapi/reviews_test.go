package kubeletapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestRequestsThatNeedTheSameAnswerAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		r := newReviews[string]()
		answers := make(chan string, 50)
		for range 50 {
			go func() {
				answer, err := r.get(t.Context(), "key", func(context.Context) (string, time.Duration, error) {
					asked.Add(1)
					time.Sleep(time.Second)
					return "answer", time.Minute, nil
				})
				answers <- fmt.Sprint(answer, err)
			}()
		}
		for range 50 {
			if got := <-answers; got != "answer<nil>" {
				t.Errorf("got %s", got)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

func TestAFailedQuestionFailsAllThatWaitForItAndIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		r := newReviews[string]()
		ask := func(context.Context) (string, time.Duration, error) {
			time.Sleep(time.Second)
			return "", 0, fmt.Errorf("failure %d", asked.Add(1))
		}
		errs := make(chan error, 10)
		for range 10 {
			go func() { _, err := r.get(t.Context(), "key", ask); errs <- err }()
		}
		for range 10 {
			if err := <-errs; err == nil || err.Error() != "failure 1" {
				t.Errorf("got %v", err)
			}
		}
		if _, err := r.get(t.Context(), "key", ask); err == nil || err.Error() != "failure 2" {
			t.Errorf("an error is not remembered: got %v", err)
		}
	})
}

func TestAClientThatLeavesDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReviews[string]()
		first, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := r.get(first, "key", func(ctx context.Context) (string, time.Duration, error) {
				<-ctx.Done()
				return "", 0, ctx.Err()
			})
			left <- err
		}()
		synctest.Wait()
		stays := make(chan string, 1)
		go func() {
			answer, err := r.get(t.Context(), "key", func(context.Context) (string, time.Duration, error) { return "answer", 0, nil })
			stays <- fmt.Sprint(answer, err)
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
		if got := <-stays; got != "answer<nil>" {
			t.Errorf("the other one: %s", got)
		}
	})
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		r := newReviews[string]()
		done := make(chan error, 1000)
		for i := range 1000 {
			go func() {
				_, err := r.get(t.Context(), fmt.Sprint(i), func(context.Context) (string, time.Duration, error) {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer now.Add(-1)
					time.Sleep(time.Millisecond)
					return "", 0, nil
				})
				done <- err
			}()
		}
		for range 1000 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most.Load() != reviewsAtOnce {
			t.Errorf("%d questions at once, want %d", most.Load(), reviewsAtOnce)
		}
	})
}

// apiServer answers reviews until it is down: the token good is user's, who may get all of the node.
type apiServer struct {
	down           atomic.Bool
	tokens, access atomic.Int32 // questions
}

func (a *apiServer) client() *fake.Clientset {
	client := fake.NewSimpleClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.tokens.Add(1)
		if a.down.Load() {
			return true, nil, errors.New("connection refused")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authentication.TokenReview)
		if strings.HasPrefix(review.Spec.Token, "good") {
			review.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: "user"}}
		}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.access.Add(1)
		if a.down.Load() {
			return true, nil, errors.New("connection refused")
		}
		review := action.(clienttesting.CreateAction).GetObject().(*authorization.SubjectAccessReview)
		review.Status.Allowed = review.Spec.ResourceAttributes.Verb == "get"
		return true, review, nil
	})
	return client
}

// door is one with nothing behind it but "in".
func (a *apiServer) door() http.Handler {
	client := a.client()
	s := &Server{options: Options{}, log: slog.New(slog.DiscardHandler),
		who: newAuthenticator(nil, client.AuthenticationV1().TokenReviews()),
		may: newAuthorizer("node", client.AuthorizationV1().SubjectAccessReviews())}
	return s.door(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") }))
}

func knock(door http.Handler, method, token string) string {
	request := httptest.NewRequest(method, "/pods", nil)
	if token != "" {
		request.Header.Set("Authorization", "bearer "+token)
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, request)
	return fmt.Sprint(w.Code, " ", w.Body.String())
}

func TestDecisionsCountWhileTheAPIServerIsDownAndThenNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiServer{}
		door := api.door()
		expect := func(when, method, token, want string) {
			t.Helper()
			if got := knock(door, method, token); got != want {
				t.Errorf("%s: %s with %s: got %q, want %q", when, method, token, got, want)
			}
		}
		const forbidden = "403 Forbidden (user=user, verb=create, resource=nodes, subresource(s)=[pods proxy])\n"
		expect("at first", "GET", "good", "200 in")
		expect("at first", "POST", "good", forbidden)
		expect("at first", "GET", "bad", "401 Unauthorized")
		api.down.Store(true)
		time.Sleep(29 * time.Second)
		expect("soon after", "GET", "good", "200 in")
		expect("soon after", "POST", "good", forbidden)
		expect("soon after", "GET", "another good one", "401 Unauthorized")
		time.Sleep(2 * time.Second)
		expect("when the refusal is forgotten", "POST", "good", "500 Authorization error (user=user, verb=create, resource=nodes, subresource=pods)")
		time.Sleep(90 * time.Second)
		expect("when the token is forgotten", "GET", "good", "401 Unauthorized")
		api.down.Store(false)
		expect("when it is back", "GET", "good", "200 in")
	})
}

func TestAnAllowanceIsForgottenAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apiServer{}
		door := api.door()
		for range 4*60 + 59 {
			if got := knock(door, "GET", "good"); got != "200 in" {
				t.Fatal(got)
			}
			time.Sleep(time.Second)
		}
		if asked := api.access.Load(); asked != 1 {
			t.Errorf("asked %d times within 5 minutes", asked)
		}
		if asked := api.tokens.Load(); asked != 3 {
			t.Errorf("asked for the token %d times within 5 minutes, want every 2", asked)
		}
		time.Sleep(2 * time.Second)
		knock(door, "GET", "good")
		if asked := api.access.Load(); asked != 2 {
			t.Errorf("asked %d times after 5 minutes", asked)
		}
	})
}

func TestATokenOfAnySizeIsNotSentOn(t *testing.T) {
	api := &apiServer{}
	if got := knock(api.door(), "GET", strings.Repeat("x", maxTokenBytes+1)); got != "401 Unauthorized" || api.tokens.Load() != 0 {
		t.Errorf("got %q, asked %d times", got, api.tokens.Load())
	}
}

func TestNoTokenIsNoToken(t *testing.T) {
	api := &apiServer{}
	for _, header := range []string{"", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Token good"} {
		request := httptest.NewRequest("GET", "/pods", nil)
		request.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		api.door().ServeHTTP(w, request)
		if w.Code != http.StatusUnauthorized || api.tokens.Load() != 0 {
			t.Errorf("%q: got %d, asked %d times", header, w.Code, api.tokens.Load())
		}
	}
}

func TestATokenMayComeAsAProtocolOfAWebSocket(t *testing.T) {
	api := &apiServer{}
	token := tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte("good"))
	for _, c := range []struct {
		protocols, upgrade string
		want               int
		left               string
	}{
		{"v4.channel.k8s.io, " + token, "websocket", 200, "v4.channel.k8s.io"},
		{token, "websocket", 401, token}, // there is no other one to choose
		{"v4.channel.k8s.io, " + token, "", 401, "v4.channel.k8s.io, " + token},
		{"v4.channel.k8s.io, " + tokenProtocol + "?", "websocket", 401, "v4.channel.k8s.io, " + tokenProtocol + "?"},
		{"v4.channel.k8s.io", "websocket", 401, "v4.channel.k8s.io"},
	} {
		request := httptest.NewRequest("GET", "/pods", nil)
		request.Header.Set("Sec-WebSocket-Protocol", c.protocols)
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", c.upgrade)
		w := httptest.NewRecorder()
		api.door().ServeHTTP(w, request)
		if left := request.Header.Get("Sec-WebSocket-Protocol"); w.Code != c.want || left != c.left {
			t.Errorf("%s: got %d, left %q; want %d, %q", c.protocols, w.Code, left, c.want, c.left)
		}
	}
}
