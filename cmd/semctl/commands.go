package main

// commands is the command line.
type commands struct {
	Help       helpFlag    `short:"h" help:"Print this page and exit."`
	Version    versionFlag `help:"Print the version and exit."`
	JSON       bool        `name:"json" help:"Print JSON: an object, or for a listing one object a line."`
	Connection connection  `embed:"" group:"Connection"`

	Run     guardCommand   `cmd:"" group:"Permits" help:"Run a command while holding a permit."`
	Acquire acquireCommand `cmd:"" group:"Permits" help:"Take permits, for another process to give back."`
	Release releaseCommand `cmd:"" group:"Permits" help:"Give a holder's permits back."`
	Renew   renewCommand   `cmd:"" group:"Permits" help:"Set the lease of a holder, counted from now."`
	Check   checkCommand   `cmd:"" group:"Permits" help:"Tell whether a grant is live now."`
	Cancel  cancelCommand  `cmd:"" group:"Permits" help:"Make a holder leave the line."`

	List    listCommand    `cmd:"" group:"Looking" help:"List semaphores."`
	Info    infoCommand    `cmd:"" group:"Looking" help:"Show the figures and settings of a semaphore."`
	Holders holdersCommand `cmd:"" group:"Looking" help:"List who holds permits of a semaphore."`
	Waiters waitersCommand `cmd:"" group:"Looking" help:"List who waits in line."`
	Top     topCommand     `cmd:"" group:"Looking" help:"Watch semaphores, holders and lines in a live view."`

	Create    createCommand    `cmd:"" group:"Care" help:"Make a semaphore."`
	Resize    resizeCommand    `cmd:"" group:"Care" help:"Change the capacity and settings of a semaphore."`
	Reconcile reconcileCommand `cmd:"" group:"Care" help:"Make the books of a semaphore balance."`
	Delete    deleteCommand    `cmd:"" group:"Care" help:"Delete a semaphore."`
	Node      nodeCommand      `cmd:"" group:"Care" help:"Look after the nodes of a cluster."`

	Bench      benchCommand      `cmd:"" group:"Care" help:"Put servers under a load, and measure."`
	Completion completionCommand `cmd:"" group:"Care" help:"Print the completion script for a shell."`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:""`
	Guardian   guardianCommand   `cmd:"" name:"__guardian" hidden:""`
}
