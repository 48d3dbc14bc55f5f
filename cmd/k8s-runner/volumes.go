package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

func newVolumes() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "volumes",
		Short:   "List and remove named volumes",
		GroupID: groupClient,
		Args:    unknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newVolumesLs(), newVolumesRm()} {
		sub.GroupID = "" // the groups are those of the root
		sub.Args = usageArgs(sub.Args)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newVolumesLs() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List named volumes",
		Long: `List the named volumes that carry a volume_key label, by name. One that is being
removed is not listed.

USED BY is the beginning of the id of each workload whose Pod mounts the volume,
whatever state it is in. The fields of json and yaml are those of VolumeListItem
and ListWorkloadsByVolumeResponse in runner.proto.`,
		Example: `  k8s-runner volumes ls
  k8s-runner volumes ls -q
  k8s-runner volumes ls -o json | jq -r '.[] | select(.target_ids == []).instance_id'`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only names")
	form := outputFlag(cmd.Flags(), formTable, formJSON, formYAML)
	return clientCommand(cmd, func(cmd *cobra.Command, c client, _ []string) error {
		found, err := c.ListVolumes(cmd.Context(), &runnerv1.ListVolumesRequest{})
		if err != nil {
			return fmt.Errorf("listing volumes: %w", err)
		}
		if quiet {
			_, err := fmt.Fprint(cmd.OutOrStdout(), lines(volumeNames(found.GetVolumes())))
			return err
		}
		volumes, err := c.withUsers(cmd.Context(), found.GetVolumes())
		if err != nil {
			return fmt.Errorf("listing the users of volumes: %w", err)
		}
		if form.value == formTable {
			_, err := fmt.Fprint(cmd.OutOrStdout(), volumesTable(volumes))
			return err
		}
		list, err := json.Marshal(volumes)
		if err != nil {
			return fmt.Errorf("encoding JSON: %w", err)
		}
		return printAs(cmd.OutOrStdout(), form.value, list)
	})
}

func newVolumesRm() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm [flags] NAME...",
		Short: "Remove named volumes with their data",
		Long: `Remove named volumes with their data. One that a workload uses is no longer
listed and no other workload gets it, but its data goes only with that workload.
One that is not there is no error; one that the runner did not make stays.`,
		Example: `  k8s-runner volumes rm data
  k8s-runner volumes rm $(k8s-runner volumes ls -q)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("there is no NAME of a volume")
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "without grace, where the storage knows one")
	return clientCommand(cmd, func(cmd *cobra.Command, c client, args []string) error {
		var problems []error
		for _, name := range args {
			if _, err := c.RemoveVolume(cmd.Context(), &runnerv1.RemoveVolumeRequest{VolumeName: name, Force: force}); err != nil {
				problems = append(problems, fmt.Errorf("removing the volume %s: %w", name, err))
				continue
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
				problems = append(problems, err)
			}
		}
		return errors.Join(problems...)
	})
}

// usedVolume is a volume and the ids of the workloads that mount it.
type usedVolume struct {
	Name  string   `json:"instance_id"`
	Key   string   `json:"volume_key"`
	Users []string `json:"target_ids"`
}

// withUsers asks for the users of each volume, several at once.
func (c client) withUsers(ctx context.Context, volumes []*runnerv1.VolumeListItem) ([]usedVolume, error) {
	used := make([]usedVolume, len(volumes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspectsAtOnce)
	for i, v := range volumes {
		group.Go(func() error {
			found, err := c.ListWorkloadsByVolume(ctx, &runnerv1.ListWorkloadsByVolumeRequest{VolumeName: v.GetInstanceId()})
			if err != nil {
				return err
			}
			// Of nobody it is an empty list, not null.
			used[i] = usedVolume{Name: v.GetInstanceId(), Key: v.GetVolumeKey(), Users: append([]string{}, found.GetTargetIds()...)}
			return nil
		})
	}
	return used, group.Wait()
}

func volumeNames(volumes []*runnerv1.VolumeListItem) []string {
	names := make([]string, len(volumes))
	for i, v := range volumes {
		names[i] = v.GetInstanceId()
	}
	return names
}

func volumesTable(volumes []usedVolume) string {
	rows := [][]string{{"NAME", "KEY", "USED BY"}}
	for _, v := range volumes {
		short := make([]string, len(v.Users))
		for i, id := range v.Users {
			short[i], _, _ = strings.Cut(id, "-")
		}
		users := "-"
		if len(short) > 0 {
			users = strings.Join(short, ",")
		}
		rows = append(rows, []string{v.Name, v.Key, users})
	}
	return table(rows...)
}
