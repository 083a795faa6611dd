"""The dialect, with what programs do first."""

import datetime
import decimal

import pytest

sqlalchemy = pytest.importorskip("sqlalchemy")
orm = pytest.importorskip("sqlalchemy.orm")


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sqlalchemy.String(50), unique=True)
    born: orm.Mapped[datetime.date | None]
    paid: orm.Mapped[decimal.Decimal] = orm.mapped_column(sqlalchemy.Numeric(10, 2), default=decimal.Decimal("0"))
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "books"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    title: orm.Mapped[str]
    author_id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.ForeignKey("authors.id"), index=True)
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")


@pytest.fixture
def engine(tmp_path):
    from sqlalchemy.dialects import registry

    registry.register("clearway", "clearway.sqlalchemy", "ClearwayDialect")
    engine = sqlalchemy.create_engine(f"clearway:///{tmp_path / 'db'}")
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def test_objects_are_written_read_changed_and_deleted(engine):
    with orm.Session(engine) as session:
        ada = Author(name="Ada", born=datetime.date(1815, 12, 10), paid=decimal.Decimal("12.50"))
        ada.books = [Book(title="Notes"), Book(title="Letters")]
        session.add_all([ada, Author(name="Grace")])
        session.commit()
        found = session.scalars(sqlalchemy.select(Author).where(Author.name.in_(["Ada", "Nobody"]))).all()
        assert [(a.name, a.born, a.paid, len(a.books)) for a in found] == [("Ada", datetime.date(1815, 12, 10), decimal.Decimal("12.50"), 2)]
        found[0].name = "Ada Lovelace"
        session.commit()
        count = sqlalchemy.select(Author.name, sqlalchemy.func.count(Book.id)).outerjoin(Book).group_by(Author.name).order_by(Author.name)
        assert session.execute(count).all() == [("Ada Lovelace", 2), ("Grace", 0)]
        session.delete(found[0])
        session.commit()
        assert session.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(Book)) == 0


def test_a_violated_constraint_is_an_integrity_error(engine):
    with orm.Session(engine) as session:
        session.add_all([Author(name="Ada"), Author(name="Ada")])
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            session.commit()


def test_tables_are_reflected(engine):
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["authors", "books"]
    assert [column["name"] for column in inspector.get_columns("books")] == ["id", "title", "author_id"]
    assert inspector.get_foreign_keys("books")[0]["referred_table"] == "authors"
    assert inspector.get_pk_constraint("authors")["constrained_columns"] == ["id"]
