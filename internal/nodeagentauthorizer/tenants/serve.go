package tenants

import (
	"net/http"
	"path"
)

// ServeHTTP implements http.Handler: the last part of the path is the name of a shoot.
func (d *Directory) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name := path.Base(request.URL.Path)
	d.mu.RLock()
	shoot := d.shoots[name]
	d.mu.RUnlock()
	if shoot != nil {
		shoot.ServeHTTP(w, request)
		return
	}
	d.Absent(name).ServeHTTP(w, request)
}
