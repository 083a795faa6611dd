// Flyway, Liquibase and Hibernate, one after the other, over one database; each prints what it made and saw.
import jakarta.persistence.*;
import jakarta.persistence.CascadeType;
import jakarta.persistence.Index;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.io.*;
import java.math.BigDecimal;
import java.nio.file.*;
import java.sql.*;
import java.time.*;
import java.util.*;
import liquibase.Liquibase;
import liquibase.database.*;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.resource.DirectoryResourceAccessor;
import org.flywaydb.core.Flyway;
import org.hibernate.*;
import org.hibernate.annotations.*;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

public class Tools {
    static final String URL = System.getenv("DATABASE_URL").replaceFirst("postgresql://postgres@", "jdbc:postgresql://") + "?user=postgres";

    static void show(String what, Object... values) {
        System.out.println(what + " " + Arrays.deepToString(values));
    }

    // What JDBC's metadata says of a table.
    static void reflect(String table) throws SQLException {
        try (Connection c = DriverManager.getConnection(URL)) {
            DatabaseMetaData m = c.getMetaData();
            for (ResultSet r = m.getColumns(null, "public", table, null); r.next();) {
                show("  column", r.getString("COLUMN_NAME"), r.getString("TYPE_NAME"), r.getInt("COLUMN_SIZE"), r.getString("IS_NULLABLE"), r.getString("COLUMN_DEF"), r.getString("IS_AUTOINCREMENT"));
            }
            List<String> found = new ArrayList<>();
            for (ResultSet r = m.getIndexInfo(null, "public", table, false, false); r.next();) {
                found.add(r.getString("INDEX_NAME") + " " + r.getString("COLUMN_NAME") + " " + r.getBoolean("NON_UNIQUE") + " " + r.getString("FILTER_CONDITION"));
            }
            for (ResultSet r = m.getImportedKeys(null, "public", table); r.next();) {
                found.add(r.getString("FKCOLUMN_NAME") + " -> " + r.getString("PKTABLE_NAME") + " " + r.getInt("DELETE_RULE"));
            }
            Collections.sort(found);
            show("  keys", found);
        }
    }

    static void flyway(Path home) throws Exception {
        Path scripts = Files.createDirectories(home.resolve("flyway"));
        Files.writeString(scripts.resolve("V1__first.sql"), "create table flown (id bigserial primary key, name varchar(20) not null default 'x', price numeric(8,2) check (price > 0));\ninsert into flown (price) values (1.5);\n");
        Files.writeString(scripts.resolve("V2__second.sql"), "alter table flown add column tags text[] default '{}';\ncreate index flown_name on flown (lower(name)) where price > 1;\n");
        Files.writeString(scripts.resolve("R__view.sql"), "create or replace view flying as select id, name from flown;\n");
        Flyway f = Flyway.configure().dataSource(URL, "postgres", "").locations("filesystem:" + scripts).cleanDisabled(false).load();
        show("flyway migrate", f.migrate().migrationsExecuted);
        show("flyway again", f.migrate().migrationsExecuted);
        f.validate();
        for (var i : f.info().all()) {
            show("flyway info", i.getVersion(), i.getDescription(), i.getState());
        }
        reflect("flown");
        Files.writeString(scripts.resolve("V3__broken.sql"), "create table half (id int);\nselect 1 / 0;\n");
        try {
            f.migrate();
        } catch (Exception e) {
            show("flyway broken", e.getClass().getSimpleName(), f.info().current().getVersion());
        }
        Files.delete(scripts.resolve("V3__broken.sql"));
        f.repair();
        show("flyway clean", f.clean().schemasCleaned);
        show("flyway baseline", Flyway.configure().dataSource(URL, "postgres", "").locations("filesystem:" + scripts).baselineOnMigrate(true).load().migrate().migrationsExecuted);
        f.clean();
    }

    static Database database() throws Exception {
        return DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(DriverManager.getConnection(URL)));
    }

    static void liquibase(Path home) throws Exception {
        Path scripts = Files.createDirectories(home.resolve("liquibase"));
        Files.writeString(scripts.resolve("log.yaml"), """
            databaseChangeLog:
            - changeSet:
                id: 1
                author: a
                changes:
                - createTable:
                    tableName: person
                    remarks: who there is
                    columns:
                    - column: {name: id, type: bigint, autoIncrement: true, constraints: {primaryKey: true, nullable: false}}
                    - column: {name: name, type: varchar(80), constraints: {nullable: false, unique: true, uniqueConstraintName: one_name}}
                    - column: {name: active, type: boolean, defaultValueBoolean: true}
                    - column: {name: made, type: timestamp with time zone, defaultValueComputed: CURRENT_TIMESTAMP}
                    - column: {name: rating, type: "decimal(6,2)", defaultValueNumeric: 1.5}
                - createTable:
                    tableName: pet
                    columns:
                    - column: {name: id, type: uuid, defaultValueComputed: gen_random_uuid(), constraints: {primaryKey: true, nullable: false}}
                    - column: {name: owner, type: bigint, constraints: {foreignKeyName: pet_owner, references: person(id), deleteCascade: true}}
                - createIndex: {indexName: by_rating, tableName: person, columns: [{column: {name: rating, descending: true}}]}
                - insert: {tableName: person, columns: [{column: {name: name, value: Ann}}]}
                - createView: {viewName: active_person, selectQuery: "select id, name from person where active"}
                - createSequence: {sequenceName: numbers, startValue: 10, incrementBy: 5}
            - changeSet:
                id: 2
                author: a
                changes:
                - addColumn: {tableName: person, columns: [{column: {name: age, type: int}}]}
                - renameColumn: {tableName: person, oldColumnName: active, newColumnName: is_active, columnDataType: boolean}
                - modifyDataType: {tableName: person, columnName: rating, newDataType: "decimal(10,3)"}
                - addDefaultValue: {tableName: person, columnName: age, defaultValueNumeric: 7}
                - addNotNullConstraint: {tableName: person, columnName: age, columnDataType: int, defaultNullValue: "3"}
                - tagDatabase: {tag: second}
            """);
        try (Database d = database()) {
            Liquibase l = new Liquibase("log.yaml", new DirectoryResourceAccessor(scripts.toFile()), d);
            l.update("");
            show("liquibase status", l.listUnrunChangeSets(new liquibase.Contexts(), new liquibase.LabelExpression()).size());
            l.update("");
            reflect("person");
            reflect("pet");
            liquibase.CatalogAndSchema schema = new liquibase.CatalogAndSchema(null, "public");
            var diff = l.diff(d, d, new CompareControl());
            show("liquibase diff", diff.areEqual(), diff.getMissingObjects().size(), diff.getChangedObjects().size());
            liquibase.snapshot.DatabaseSnapshot seen = liquibase.snapshot.SnapshotGeneratorFactory.getInstance().createSnapshot(schema, d, new liquibase.snapshot.SnapshotControl(d));
            var made = new ByteArrayOutputStream();
            var empty = new liquibase.snapshot.EmptyDatabaseSnapshot(d);
            var result = liquibase.diff.DiffGeneratorFactory.getInstance().compare(seen, empty, new CompareControl());
            new DiffToChangeLog(result, new DiffOutputControl()).print(new PrintStream(made), new liquibase.serializer.core.yaml.YamlChangeLogSerializer());
            // Objects come in no order, and a view's query is as it was written.
            var other = ".*(id: \\d|author:|SELECT|FROM|WHERE|person.name|selectQuery|Definition).*";
            made.toString().lines().filter(line -> !line.matches(other)).sorted().forEach(line -> show("liquibase generated", line));
            l.dropAll();
        }
    }

    public enum Level { LOW, HIGH }

    @Entity(name = "Author") @Table(name = "author", indexes = @Index(name = "by_name", columnList = "name"))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) public Long id;
        @Column(nullable = false, unique = true, length = 80) public String name;
        @Enumerated(EnumType.STRING) public Level level = Level.LOW;
        @Enumerated(EnumType.ORDINAL) public Level other = Level.HIGH;
        @JdbcTypeCode(SqlTypes.JSON) public Map<String, Object> settings = Map.of("a", 1);
        @JdbcTypeCode(SqlTypes.ARRAY) public List<String> tags = List.of("x", "y");
        @Column(precision = 6, scale = 2) @ColumnDefault("1.5") public BigDecimal rating = new BigDecimal("2.50");
        public UUID token = new UUID(1, 2);
        public Instant seen = Instant.EPOCH;
        public LocalDate born = LocalDate.of(2000, 1, 2);
        public LocalTime at = LocalTime.of(10, 20);
        public byte[] photo = {1, 2};
        @Lob @JdbcTypeCode(SqlTypes.LONGVARCHAR) public String about = "long";
        @Version public int version;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("title") public List<Book> books = new ArrayList<>();
    }

    @Entity(name = "Book") @Table(name = "book", uniqueConstraints = @UniqueConstraint(name = "once", columnNames = {"title", "author_id"}))
    public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "books") @SequenceGenerator(name = "books", sequenceName = "books", allocationSize = 10) public Long id;
        public String title;
        @Check(constraints = "pages >= 0") public int pages;
        @ManyToOne(optional = false) @OnDelete(action = OnDeleteAction.CASCADE) public Author author;
        @ManyToMany public Set<Label> labels = new HashSet<>();
    }

    @Entity(name = "Label") @Table(name = "label")
    public static class Label { @Id public String name; }

    static SessionFactory hibernate(String how) {
        Configuration c = new Configuration().addAnnotatedClass(Author.class).addAnnotatedClass(Book.class).addAnnotatedClass(Label.class);
        c.setProperty("hibernate.connection.url", URL).setProperty("hibernate.hbm2ddl.auto", how).setProperty("hibernate.jdbc.batch_size", "20");
        c.setProperty("hibernate.hbm2ddl.halt_on_error", "true").setProperty("hibernate.jdbc.time_zone", "UTC");
        return c.buildSessionFactory();
    }

    static void hibernate() throws Exception {
        hibernate("create").close();
        hibernate("update").close();
        hibernate("validate").close();
        for (String table : List.of("author", "book", "label", "book_label")) {
            show("hibernate", table);
            reflect(table);
        }
        try (SessionFactory f = hibernate("validate")) {
            f.inTransaction(s -> {
                Author a = new Author();
                a.name = "Ann";
                for (int i = 0; i < 25; i++) {
                    Book b = new Book();
                    b.title = "t" + (char) ('a' + i);
                    b.pages = i * 10;
                    b.author = a;
                    a.books.add(b);
                }
                Label l = new Label();
                l.name = "red";
                s.persist(l);
                s.persist(a);
                a.books.get(0).labels.add(l);
            });
            f.inTransaction(s -> {
                Author a = s.createQuery("from Author a join fetch a.books where a.name = :n", Author.class).setParameter("n", "Ann").getSingleResult();
                show("found", a.id, a.level, a.other, a.settings, a.tags, a.rating, a.token, a.seen, a.born, a.at, a.photo, a.about, a.books.size());
                a.rating = new BigDecimal("3.25");
            });
            f.inSession(s -> {
                show("version", s.find(Author.class, 1L).version);
                show("grouped", (Object[]) s.createQuery("select a.name, count(b), sum(b.pages), max(b.title) from Author a join a.books b group by a.name", Object[].class).getSingleResult());
                show("page", s.createQuery("select b.title from Book b order by b.pages desc", String.class).setFirstResult(2).setMaxResults(3).getResultList());
                show("exists", s.createQuery("select b.title from Book b where exists (select 1 from b.labels l where l.name = 'red') or b.pages in (20, 30) order by b.title", String.class).getResultList());
                show("window", s.createQuery("select b.title, rank() over (partition by b.author.id order by b.pages desc) from Book b order by 2", Object[].class).setMaxResults(2).getResultList().size());
                show("array", s.createQuery("select a.name from Author a where array_contains(a.tags, 'x')", String.class).getResultList());
                show("native", s.createNativeQuery("select settings ->> 'a' from author", String.class).getResultList());
            });
            f.inTransaction(s -> show("updated", s.createMutationQuery("update Book b set b.pages = b.pages + 1 where b.pages > 100").executeUpdate()));
            f.inTransaction(s -> show("locked", s.find(Author.class, 1L, LockModeType.PESSIMISTIC_WRITE).name));
            f.inTransaction(s -> show("upserted", s.createMutationQuery("insert into Label (name) values ('red'), ('blue') on conflict(name) do nothing").executeUpdate()));
            try {
                f.inTransaction(s -> {
                    Author a = new Author();
                    a.name = "Ann";
                    s.persist(a);
                });
            } catch (org.hibernate.exception.ConstraintViolationException e) {
                show("unique", e.getSQLState(), e.getKind());
            }
            f.inTransaction(s -> s.remove(s.find(Author.class, 1L)));
            f.inSession(s -> show("left", s.createQuery("select count(b) from Book b", Long.class).getSingleResult()));
        }
        hibernate("create-drop").close();
    }

    public static void main(String[] words) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        Path home = Files.createTempDirectory("tools");
        if (words[0].equals("flyway")) flyway(home);
        if (words[0].equals("liquibase")) liquibase(home);
        if (words[0].equals("hibernate")) hibernate();
    }
}
