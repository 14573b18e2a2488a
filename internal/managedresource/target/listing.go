package target

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// pageSize is the number of objects in one answer: five hundred objects of some kilobytes take a few megabytes, and
	// a hundred thousand objects need two hundred requests.
	pageSize = 500
	// listAttempts is the number of attempts at a list whose next page has expired; the last attempt requests one page
	// with everything.
	listAttempts = 3
)

// pageFunc requests a page.
type pageFunc func(context.Context, metav1.ListOptions) (runtime.Object, error)

// paging has the callbacks of a list in pages: start is called before each attempt, begin for its first page, and
// each for every object.
type paging struct {
	start func()
	begin func(resourceVersion string) error
	each  func(runtime.Object) error
}

// listPages lists the latest state in pages, and keeps none. It returns the resource version of the list; after an
// error, the reported objects are incomplete.
func listPages(ctx context.Context, options metav1.ListOptions, page pageFunc, p paging) (string, error) {
	for attempt := 1; ; attempt++ {
		version, err := listOnce(ctx, options, attempt < listAttempts, page, p)
		if err != nil && attempt < listAttempts && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			continue
		}
		return version, err
	}
}

func listOnce(ctx context.Context, options metav1.ListOptions, inPages bool, page pageFunc, p paging) (string, error) {
	options.ResourceVersion, options.ResourceVersionMatch, options.Continue, options.Limit = "", "", "", 0
	if inPages {
		options.Limit = pageSize
	}
	p.start()
	version := ""
	for {
		list, err := askForPage(ctx, options, page)
		if err != nil {
			return "", err
		}
		accessor, err := apimeta.ListAccessor(list)
		if err != nil {
			return "", fmt.Errorf("unexpected list %T: %w", list, err)
		}
		if options.Continue == "" {
			version = accessor.GetResourceVersion()
			if err := p.begin(version); err != nil {
				return "", err
			}
		}
		if err := apimeta.EachListItem(list, p.each); err != nil {
			return "", err
		}
		if options.Continue = accessor.GetContinue(); options.Continue == "" {
			return version, nil
		}
	}
}

func askForPage(ctx context.Context, options metav1.ListOptions, page pageFunc) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return page(ctx, options)
}
