package process

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/espalier-project/espalier/internal/serve"
)

const (
	// admissionLimit bounds the body of an AdmissionReview: two objects of 3 MiB, twice what etcd keeps of one, and what is around them.
	admissionLimit = 7 << 20
	// admissionsAtOnce bounds the reviews that are worked on at a time. Each makes some reads at most, and kube-apiserver waits ten seconds.
	admissionsAtOnce = 256
)

// admissionBodies are of the process, as those of reviews are. Large objects are usual here, so that more than one is worked on at a time.
var admissionBodies = serve.NewBodies(4)

// Admissions reads the bodies of AdmissionReviews for a handler, so that none of them holds up others. What cannot be read is answered
// with an HTTP status, which makes the failure policy of the webhook decide.
type Admissions struct {
	Handler http.Handler
	// Bodies reads bodies; nil means that of the process.
	Bodies *serve.Bodies
	Log    logr.Logger

	working int32
}

// ServeHTTP implements http.Handler.
func (h *Admissions) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if err := h.serve(w, request); err != nil {
		h.Log.V(1).Info("Admission review failed", "reason", err.Error())
		http.Error(w, err.Error(), serve.StatusOf(err))
	}
}

func (h *Admissions) serve(w http.ResponseWriter, request *http.Request) error {
	bodies := h.Bodies
	if bodies == nil {
		bodies = admissionBodies
	}
	if request.Body == nil {
		request.Body = http.NoBody
	}
	buffer := &bytes.Buffer{}
	release, err := bodies.Read(w, request, buffer, admissionLimit)
	if err != nil {
		return err
	}
	defer release()
	defer atomic.AddInt32(&h.working, -1)
	if atomic.AddInt32(&h.working, 1) > admissionsAtOnce {
		return serve.WithStatus(http.StatusServiceUnavailable, errors.New("too many reviews at once"))
	}
	read := request.WithContext(request.Context())
	if read.Body = http.NoBody; buffer.Len() > 0 {
		read.Body = io.NopCloser(buffer)
	}
	h.Handler.ServeHTTP(w, read)
	return nil
}
