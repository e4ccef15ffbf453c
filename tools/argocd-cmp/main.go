// Runs Argo CD's argocd-cmp-server, and the part of its repo-server that talks to it, for the tests of
// gitops/argocd/plugin.yaml.
//
//	argocd-cmp serve --config-dir-path DIR   the server; Argo CD's environment variables name its socket and its folder
//	argocd-cmp generate SOCKET REPO PATH     stream the folder REPO; print the manifests of the application in PATH
//	argocd-cmp match SOCKET REPO PATH        stream it too; print whether the plugin takes that application
//	argocd-cmp parameters SOCKET REPO PATH   stream it too; print the parameters that the plugin announces, as JSON
//	argocd-cmp check FILE…                   fail for an Application or ApplicationSet that has a field of no meaning
//
// As a repo-server does, it sends the variables of the environment that begin with ARGOCD_APP_, ARGOCD_ENV_, KUBE_ or PARAM_.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	server "github.com/argoproj/argo-cd/v3/cmd/argocd-cmp-server/commands"
	"github.com/argoproj/argo-cd/v3/cmpserver/apiclient"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/cmp"
	"sigs.k8s.io/yaml"
)

// Argo CD's own timeout for a request of its repo-server.
const timeout = 60 * time.Second

func main() {
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		command := server.NewCommand()
		command.SetArgs(args[1:])
		return command.Execute()
	}
	if len(args) > 0 && args[0] == "check" {
		for _, file := range args[1:] {
			err := check(file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		return nil
	}
	if len(args) != 4 {
		return errors.New("usage: argocd-cmp serve --config-dir-path DIR | generate|match|parameters SOCKET REPO PATH | check FILE…")
	}
	return ask(args[0], args[1], args[2], args[3])
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var object struct{ Kind string }
	err = yaml.Unmarshal(text, &object)
	if err != nil {
		return err
	}
	switch object.Kind {
	case "Application":
		return yaml.UnmarshalStrict(text, &v1alpha1.Application{})
	case "ApplicationSet":
		return yaml.UnmarshalStrict(text, &v1alpha1.ApplicationSet{})
	}
	return fmt.Errorf("kind is %q", object.Kind)
}

func ask(what, socket, repo, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connection, client, err := apiclient.NewConfigManagementPluginClientSet(socket).NewConfigManagementPluginClient()
	if err != nil {
		return err
	}
	defer connection.Close()

	send := func(stream cmp.StreamSender) error {
		return cmp.SendRepoStream(ctx, path, repo, stream, sent(os.Environ()), nil)
	}
	switch what {
	case "generate":
		stream, err := client.GenerateManifest(ctx)
		if err != nil {
			return err
		}
		return answer(send(stream), stream.CloseAndRecv, func(response *apiclient.ManifestResponse) {
			for _, manifest := range response.Manifests {
				fmt.Printf("---\n%s\n", strings.TrimSuffix(manifest, "\n"))
			}
		})
	case "match":
		stream, err := client.MatchRepository(ctx)
		if err != nil {
			return err
		}
		return answer(send(stream), stream.CloseAndRecv, func(response *apiclient.RepositoryResponse) {
			fmt.Println(response.IsSupported)
		})
	case "parameters":
		stream, err := client.GetParametersAnnouncement(ctx)
		if err != nil {
			return err
		}
		return answer(send(stream), stream.CloseAndRecv, func(response *apiclient.ParametersAnnouncementResponse) {
			json.NewEncoder(os.Stdout).Encode(response.ParameterAnnouncements)
		})
	}
	return fmt.Errorf("%s: generate, match or parameters?", what)
}

// answer waits for the response to the files that were sent, and prints it.
func answer[T any](sent error, receive func() (T, error), show func(T)) error {
	if sent != nil {
		return sent
	}
	response, err := receive()
	if err != nil {
		return err
	}
	show(response)
	return nil
}

// sent returns the variables that a repo-server sends along.
func sent(environ []string) (chosen []string) {
	for _, variable := range environ {
		for _, prefix := range []string{"ARGOCD_APP_", "ARGOCD_ENV_", "KUBE_", "PARAM_"} {
			if strings.HasPrefix(variable, prefix) {
				chosen = append(chosen, variable)
			}
		}
	}
	return chosen
}
