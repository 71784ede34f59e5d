"""Keep who managed what: an append-only table. SPEC §observe."""

import sqlalchemy as sa
from alembic import op

revision = "20261130_2"
down_revision = "20261130_1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.CheckConstraint("at GLOB '????-??-??T??:??:??.??????Z'", name="at_is_utc"),
        sa.CheckConstraint("actor IN ('operator', 'workspace')", name="actor_is_a_kind_of_token"),
    )
    op.create_index("audit_at", "audit", ["at"])
    op.execute(
        "CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit"
        " BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END"
    )


def downgrade() -> None:
    op.drop_table("audit")
