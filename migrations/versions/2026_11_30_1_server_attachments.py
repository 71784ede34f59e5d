"""Keep what each workspace attached or detached. SPEC §effective, §state."""

import sqlalchemy as sa
from alembic import op

revision = "20261130_1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_attachments",
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "name"),
        sa.CheckConstraint(
            "typeof(workspace) = 'text' AND length(workspace) BETWEEN 1 AND 128"
            " AND workspace NOT GLOB '*[^-A-Za-z0-9._]*' AND workspace NOT GLOB '.*'"
            " AND instr(workspace, char(0)) = 0",
            name="workspace_is_a_name",
        ),
        sa.CheckConstraint(
            "typeof(name) = 'text' AND length(name) BETWEEN 1 AND 64"
            " AND name GLOB '[a-z]*' AND name NOT GLOB '*[^-a-z0-9]*' AND instr(name, char(0)) = 0",
            name="name_is_a_server_name",
        ),
        sa.CheckConstraint(
            "(state = 'attached' AND typeof(definition) = 'text')"
            " OR (state = 'detached' AND definition IS NULL)",
            name="only_attached_has_a_definition",
        ),
        sa.CheckConstraint("updated_at GLOB '????-??-??T??:??:??.??????Z'", name="updated_at_is_utc"),
    )


def downgrade() -> None:
    op.drop_table("server_attachments")
