"""Alembic: autogenerate over an empty database, upgrade, autogenerate again (nothing left), a change, downgrade; rows by SQLAlchemy's mapper."""

import contextlib
import io
import os
import shutil
import tempfile
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, relationship, selectinload

URL = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")


def show(what, *values):
    print(what, *map(repr, values))


class Base(DeclarativeBase):
    metadata = sa.MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"})


class Author(Base):
    __tablename__ = "author"
    __table_args__ = (sa.CheckConstraint("rating >= 0", name="rated"), sa.Index("by_lower", sa.text("lower(name)"), unique=True),
                      sa.Index("busy", "level", postgresql_where=sa.text("rating > 1")), {"comment": "who writes"})
    id = mapped_column(sa.Integer, primary_key=True)
    name = mapped_column(sa.String(80), nullable=False, unique=True, comment="the full name")
    level = mapped_column(sa.Enum("low", "high", name="level"), server_default="low")
    settings = mapped_column(pg.JSONB, server_default=sa.text("'{}'::jsonb"))
    tags = mapped_column(pg.ARRAY(sa.Text))
    token = mapped_column(pg.UUID, server_default=sa.text("gen_random_uuid()"))
    born = mapped_column(sa.Date)
    made = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    rating = mapped_column(sa.Numeric(6, 2), server_default="1.5")
    took = mapped_column(sa.Interval)
    address = mapped_column(pg.INET)
    span = mapped_column(pg.INT4RANGE)
    bits = mapped_column(pg.BIT(3))
    photo = mapped_column(sa.LargeBinary)
    shout = mapped_column(sa.Text, sa.Computed("upper(name)", persisted=True))
    books = relationship("Book", back_populates="author", cascade="all, delete-orphan", passive_deletes=True, order_by="Book.title")


class Book(Base):
    __tablename__ = "book"
    __table_args__ = (sa.UniqueConstraint("author_id", "title", name="once", deferrable=True, initially="DEFERRED"),)
    id = mapped_column(sa.BigInteger, sa.Identity(always=True, start=100), primary_key=True)
    title = mapped_column(sa.Text, nullable=False)
    pages = mapped_column(sa.SmallInteger, nullable=False, server_default="0", index=True)
    author_id = mapped_column(sa.ForeignKey("author.id", ondelete="CASCADE"), nullable=False)
    author = relationship(Author, back_populates="books")


def differences(engine, metadata):
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": metadata})
        return render_python_code(produce_migrations(context, metadata).upgrade_ops)


ENV = """
from alembic import context
from sqlalchemy import create_engine, pool
target = context.config.attributes["metadata"]
engine = create_engine(context.config.get_main_option("sqlalchemy.url"), poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=target, compare_type=True, compare_server_default=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
"""


def reflected(engine):
    inspector = sa.inspect(engine)
    for table in sorted(inspector.get_table_names()):
        show(table, inspector.get_table_comment(table), inspector.get_pk_constraint(table))
        for column in inspector.get_columns(table):
            show("  column", sorted((k, str(v)) for k, v in column.items()))
        for what in ("indexes", "unique_constraints", "foreign_keys", "check_constraints"):
            show(" ", what, sorted(getattr(inspector, f"get_{what}")(table), key=lambda found: found["name"]))
    show("enums", inspector.get_enums(), inspector.get_sequence_names(), inspector.get_view_names())


def rows(engine):
    with Session(engine) as session:
        ann = Author(name="Ann", tags=["a", "b"], settings={"x": [1]}, born=date(1990, 2, 3), took=timedelta(days=1, hours=2), address="10.0.0.1",
                     span=pg.Range(1, 5), bits="101", photo=b"hi", made=datetime(2020, 1, 2, tzinfo=timezone.utc), books=[Book(title="One", pages=3), Book(title="Two")])
        session.add_all([ann, *[Author(name=f"n{i}", rating=Decimal(i)) for i in range(30)]])
        session.commit()
        show("ann", ann.level, ann.settings, ann.tags, ann.rating, ann.took, ann.address, ann.span, ann.bits, ann.photo, ann.shout, ann.made.astimezone(timezone.utc))
        show("books", [(b.id, b.title) for b in ann.books])
        show("loaded", [(a.name, len(a.books)) for a in session.scalars(sa.select(Author).options(selectinload(Author.books)).order_by(Author.id).limit(2))])
        show("aggregate", session.execute(sa.select(Author.level, sa.func.count(), sa.func.sum(Author.rating)).group_by(Author.level)).all())
        show("json", session.scalars(sa.select(Author.name).where(Author.settings["x"][0].as_integer() == 1)).all())
        show("array", session.scalars(sa.select(Author.name).where(Author.tags.contains(["a"]), sa.any_(Author.tags) == "b")).all())
        upsert = pg.insert(Author).values(name="Ann", rating=9)
        show("upsert", session.scalars(upsert.on_conflict_do_update(index_elements=[Author.name], set_={"rating": upsert.excluded.rating}).returning(Author.rating)).all())
        with session.begin_nested() as nested:
            session.execute(sa.delete(Book))
            nested.rollback()
        show("kept", session.scalar(sa.select(sa.func.count()).select_from(Book)))
        show("locked", session.scalars(sa.select(Author.name).where(Author.name == "Ann").with_for_update(skip_locked=True)).all())
        try:
            with session.begin_nested():
                session.add(Author(name="Ann"))
                session.flush()
        except sa.exc.IntegrityError as error:
            show("unique", error.orig.sqlstate, error.orig.diag.constraint_name, error.orig.diag.message_detail)
        tree = sa.select(sa.literal(1).label("n")).cte("t", recursive=True)
        tree = tree.union_all(sa.select(tree.c.n + 1).where(tree.c.n < 5))
        show("recursive", session.scalars(sa.select(tree.c.n)).all())
        show("window", session.execute(sa.select(Author.name, sa.func.rank().over(order_by=Author.rating.desc())).limit(2).order_by(sa.desc(Author.rating))).all())
        session.delete(ann)
        session.commit()
        show("cascaded", session.scalar(sa.select(sa.func.count()).select_from(Book)))


def revision(config, name, number):
    """Makes a revision of what differs; the place of its file is of no interest."""
    with contextlib.redirect_stdout(io.StringIO()):
        command.revision(config, name, autogenerate=True, rev_id=number)


def main():
    engine = sa.create_engine(URL)
    show("before", differences(engine, Base.metadata))
    home = Path(tempfile.mkdtemp(prefix="alembic-"))
    try:
        config = Config()
        config.set_main_option("script_location", str(home / "m"))
        config.set_main_option("sqlalchemy.url", URL)
        config.attributes["metadata"] = Base.metadata
        (home / "m/versions").mkdir(parents=True)
        (home / "m/env.py").write_text(ENV)
        (home / "m/script.py.mako").write_text((Path(command.__file__).parent / "templates/generic/script.py.mako").read_text())
        revision(config, "first", "1")
        command.upgrade(config, "head")
        command.check(config)
        reflected(engine)
        show("nothing left", differences(engine, Base.metadata))
        rows(engine)

        changed = sa.MetaData(naming_convention=Base.metadata.naming_convention)
        for table in Base.metadata.sorted_tables:
            table.to_metadata(changed)
        author = changed.tables["author"]
        author.c.name.comment, changed.tables["book"].c.pages.type = "another", sa.Integer()
        author.c.rating.server_default = sa.DefaultClause("2.5")
        author.c.born.nullable = False
        author.append_column(sa.Column("extra", sa.Integer, server_default="4", nullable=False))
        sa.Table("label", changed, sa.Column("name", sa.String, primary_key=True), sa.Column("book_id", sa.ForeignKey("book.id")))
        with engine.begin() as connection:
            connection.execute(sa.text("update author set born = '2000-01-01'"))
        config.attributes["metadata"] = changed
        show("changes", differences(engine, changed))
        revision(config, "second", "2")
        command.upgrade(config, "head")
        show("nothing left", differences(engine, changed))
        command.downgrade(config, "1")
        show("as at first", differences(engine, Base.metadata))
        command.downgrade(config, "base")
        show("tables left", sa.inspect(engine).get_table_names())
        with engine.begin() as connection:
            connection.execute(sa.text("drop type if exists level"))
            operations = Operations(MigrationContext.configure(connection))
            operations.create_table("plain", sa.Column("a", sa.Integer), sa.Column("b", sa.String(5)))
            operations.bulk_insert(sa.table("plain", sa.column("a"), sa.column("b")), [{"a": 1, "b": "7"}, {"a": 2, "b": "8"}])
            operations.alter_column("plain", "b", type_=sa.Integer, postgresql_using="b::integer", new_column_name="c")
            operations.create_primary_key("plain_pk", "plain", ["a"])
            operations.rename_table("plain", "fancy")
            operations.create_index("fancy_c", "fancy", ["c"], postgresql_include=["a"])
            show("fancy", connection.execute(sa.text("select * from fancy order by a")).all(), compare_metadata(MigrationContext.configure(connection), sa.MetaData())[-1][0])
            operations.drop_table("fancy")
    finally:
        shutil.rmtree(home)


main()
