"""The groups `tenants` and `clients`: their help lists the verbs in the order of their use."""

from __future__ import annotations

import click

from tenants.commands import backups, clients, installations, migrations, schools


class InOrder(click.Group):
    """A group; its help lists the verbs in the order of their use."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """List the verbs as they were added."""
        return list(self.commands)


@click.group("tenants", cls=InOrder, help="Provision and look after schools.")
def tenants_group() -> None:
    """Hold the verbs of schools."""


@click.group("clients", cls=InOrder, help="Grant other servers access by machine tokens.")
def clients_group() -> None:
    """Hold the verbs of machine clients."""


for _verb in (
    installations.init,
    schools.create,
    schools.list_,
    schools.show_,
    installations.status,
    migrations.migrate,
    schools.suspend,
    schools.resume,
    schools.rename,
    schools.move,
    schools.edit,
    migrations.check_,
    schools.delete,
    backups.backup,
    installations.verify_,
    backups.restore_,
    migrations.revision,
    migrations.write_baseline_file,
):
    tenants_group.add_command(_verb)
for _verb in (clients.create, clients.list_, clients.edit, clients.rotate, clients.revoke):
    clients_group.add_command(_verb)
