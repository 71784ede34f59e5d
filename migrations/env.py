"""Alembic's environment: runs migrations in the transaction of the connection it is given. SPEC §state.

The daemon gives the connection (``app/store/migrate.py``). The ``alembic`` command gives a file instead:
``alembic -x database=plurnk.db current``. ``plurnk-mcpd migrate`` is the way to migrate a real one.
"""

import sqlite3
from contextlib import closing

from alembic import context
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import StaticPool

from app.store.schema import metadata


def run(connection: Connection) -> None:
    """Run the migrations that the caller asked for, all in the transaction that is open."""
    context.configure(
        connection=connection, target_metadata=metadata, transactional_ddl=True, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()


def begin(connection: Connection) -> None:
    """Start the transaction, which the driver does not do by itself."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def run_on_file() -> None:
    """Run them on the file that the command line names."""
    path = context.get_x_argument(as_dictionary=True).get("database")
    if path is None or context.is_offline_mode():
        raise SystemExit("Name the database file: alembic -x database=FILE …; --sql is not supported.")
    with closing(sqlite3.connect(path, isolation_level=None)) as driver_connection:
        engine = create_engine("sqlite://", creator=lambda: driver_connection, poolclass=StaticPool)
        event.listen(engine, "begin", begin)
        with engine.begin() as connection:
            run(connection)


given: Connection | None = context.config.attributes.get("connection")
if given is None:
    run_on_file()
else:
    run(given)
