package kubeletapi

import (
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serveWebSocket speaks v5.channel.k8s.io: channels 0 to 2 are the three streams, 3 is for the status, 4 for sizes.
func serveWebSocket(w http.ResponseWriter, request *http.Request, e *executor) {
	channel := func(wanted bool, kind wsstream.ChannelType) wsstream.ChannelType {
		if !wanted {
			return wsstream.IgnoreChannel
		}
		return kind
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
		remotecommand.StreamStdIn:  channel(e.options.Stdin, wsstream.ReadChannel),
		remotecommand.StreamStdOut: channel(e.options.Stdout, wsstream.WriteChannel),
		remotecommand.StreamStdErr: channel(e.options.Stderr, wsstream.WriteChannel),
		remotecommand.StreamErr:    wsstream.WriteChannel,
		remotecommand.StreamResize: channel(e.options.TTY, wsstream.ReadChannel),
	}}})
	conn.SetIdleTimeout(streamIdle)
	_, streams, err := conn.Open(w, request)
	if err != nil {
		return // the client has its answer
	}
	defer conn.Close()
	c := channels{
		stdin:  streams[remotecommand.StreamStdIn],
		stdout: streams[remotecommand.StreamStdOut],
		stderr: streams[remotecommand.StreamStdErr],
		status: streams[remotecommand.StreamErr],
		close:  conn.Close,
	}
	if e.options.TTY {
		c.resize = streams[remotecommand.StreamResize]
	}
	e.serve(request.Context(), c)
}
