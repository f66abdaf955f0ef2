package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// event is what kubectl would print a row for.
type event struct {
	kind watch.EventType
	row  printed
	pod  *v1.Pod
}

// printed is what kubectl prints of a pod, without name and age.
type printed struct{ ready, status, restarts string }

// The server's columns of a pod: NAME READY STATUS RESTARTS AGE ...
const (
	columnReady = iota + 1
	columnStatus
	columnRestarts
	columnAge
)

// watchRows watches one pod as kubectl does: the server makes the rows. The channel is
// closed when the watch has ended; the function that is returned then returns why.
func watchRows(ctx context.Context, client kubernetes.Interface, name string) (<-chan event, func() error, error) {
	stream, err := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Param("watch", "true").Param("includeObject", "Object").Param("fieldSelector", "metadata.name="+name).
		Stream(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("watch pod %s: %w", name, err)
	}
	events := make(chan event)
	var failed error
	go func() {
		defer close(events)
		defer stream.Close()
		failed = readRows(ctx, stream, events)
	}()
	return events, func() error { return failed }, nil
}

func readRows(ctx context.Context, stream io.Reader, events chan<- event) error {
	decoder := json.NewDecoder(stream)
	for {
		var raw metav1.WatchEvent
		if err := decoder.Decode(&raw); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read watch: %w", err)
		}
		e, err := decodeEvent(raw)
		if err != nil {
			return err
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return nil
		}
	}
}

func decodeEvent(raw metav1.WatchEvent) (event, error) {
	var table metav1.Table
	if err := json.Unmarshal(raw.Object.Raw, &table); err != nil {
		return event{}, fmt.Errorf("read table: %w", err)
	}
	if len(table.Rows) != 1 || len(table.Rows[0].Cells) <= columnAge {
		return event{}, fmt.Errorf("watch event %s is no row of a pod: %s", raw.Type, raw.Object.Raw)
	}
	pod := &v1.Pod{}
	if err := json.Unmarshal(table.Rows[0].Object.Raw, pod); err != nil {
		return event{}, fmt.Errorf("read pod: %w", err)
	}
	cells := table.Rows[0].Cells
	restarts, _, _ := strings.Cut(fmt.Sprint(cells[columnRestarts]), " ") // without "(5s ago)"
	return event{
		kind: watch.EventType(raw.Type),
		row:  printed{ready: fmt.Sprint(cells[columnReady]), status: fmt.Sprint(cells[columnStatus]), restarts: restarts},
		pod:  pod,
	}, nil
}
