// gorm: AutoMigrate (the second time nothing is changed), its migrator's reflection, associations, rows.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Settings map[string]any

type Author struct {
	ID        uint           `gorm:"primaryKey"`
	CreatedAt time.Time      `gorm:"default:'2020-01-01 00:00:00+00'"`
	DeletedAt gorm.DeletedAt `gorm:"index" json:"-"`
	Name      string         `gorm:"size:80;not null;uniqueIndex;comment:the full name"`
	Rating    float64        `gorm:"type:numeric(6,2);default:1.5;check:rated,rating >= 0"`
	Settings  Settings       `gorm:"type:jsonb;serializer:json;default:'{}'"`
	Token     string         `gorm:"type:uuid;default:gen_random_uuid()" json:"-"`
	Born      *time.Time     `gorm:"type:date"`
	Photo     []byte
	Kind      string `gorm:"type:varchar(10);default:human;index:busy,where:rating > 1"`
	Books     []Book `gorm:"constraint:OnUpdate:CASCADE,OnDelete:CASCADE"`
}

type Book struct {
	ID       uint    `gorm:"primaryKey"`
	Title    string  `gorm:"uniqueIndex:once"`
	AuthorID uint    `gorm:"uniqueIndex:once;not null"`
	Author   *Author `json:",omitempty"`
	Pages    int16   `gorm:"index:by_pages,sort:desc"`
	Sold     bool    `gorm:"default:false"`
	Labels   []Label `gorm:"many2many:book_labels"`
}

type Label struct {
	Name string `gorm:"primaryKey"`
}

// Later is Author with changes.
type Later struct {
	ID    uint   `gorm:"primaryKey"`
	Name  string `gorm:"size:120;not null;uniqueIndex;comment:another"`
	Extra *int64 `gorm:"default:7"`
	Kind  string `gorm:"type:text;default:robot"`
}

func (Later) TableName() string { return "authors" }

// statements keeps what changes a table.
type statements struct {
	logger.Interface
	seen []string
}

var changes = regexp.MustCompile(`^(CREATE|ALTER|DROP|COMMENT)`)

func (s *statements) LogMode(logger.LogLevel) logger.Interface { return s }
func (s *statements) Trace(_ context.Context, _ time.Time, what func() (string, int64), _ error) {
	if text, _ := what(); changes.MatchString(text) {
		s.seen = append(s.seen, text)
	}
}

func show(what string, values ...any) {
	parts := []string{}
	for _, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			text = []byte(fmt.Sprint(value))
		}
		parts = append(parts, string(text))
	}
	fmt.Println(what, strings.Join(parts, " "))
}

func must(err error) {
	if err != nil {
		fmt.Println("error:", err)
		panic(err)
	}
}

func main() {
	seen := &statements{Interface: logger.Discard}
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")), &gorm.Config{Logger: seen, TranslateError: true})
	must(err)
	must(db.AutoMigrate(&Author{}, &Book{}, &Label{}))
	seen.seen = nil
	must(db.AutoMigrate(&Author{}, &Book{}, &Label{}))
	show("second AutoMigrate", seen.seen)
	m := db.Migrator()
	columns := func(of any) {
		types, err := m.ColumnTypes(of)
		must(err)
		for _, t := range types {
			full, _ := t.ColumnType()
			primary, _ := t.PrimaryKey()
			unique, _ := t.Unique()
			generated, _ := t.AutoIncrement()
			length, _ := t.Length()
			precision, scale, _ := t.DecimalSize()
			null, _ := t.Nullable()
			value, _ := t.DefaultValue()
			comment, _ := t.Comment()
			show("column", t.Name(), t.DatabaseTypeName(), full, primary, unique, generated, length, precision, scale, null, value, comment)
		}
	}
	columns(&Author{})
	indexes, err := m.GetIndexes(&Book{})
	must(err)
	// It keeps them in a map, so that their order is by chance.
	sort.Slice(indexes, func(i, j int) bool { return indexes[i].Name() < indexes[j].Name() })
	for _, index := range indexes {
		primary, _ := index.PrimaryKey()
		unique, _ := index.Unique()
		show("index", index.Name(), index.Columns(), primary, unique)
	}
	tables, err := m.GetTables()
	must(err)
	show("tables", len(tables), m.HasTable("books"), m.HasColumn(&Book{}, "Pages"), m.HasConstraint(&Author{}, "rated"), m.HasIndex(&Author{}, "busy"), m.CurrentDatabase() != "")

	born := time.Date(1990, 2, 3, 0, 0, 0, 0, time.UTC)
	ann := Author{Name: "Ann", Born: &born, Settings: Settings{"a": []int{1}}, Photo: []byte("hi"), Books: []Book{{Title: "One", Pages: 3, Labels: []Label{{"red"}, {"blue"}}}, {Title: "Two"}}}
	must(db.Create(&ann).Error)
	show("created", ann.ID, ann.Rating, ann.Kind, len(ann.Token), ann.CreatedAt.UTC().Year() > 2000, ann.Books[1].ID)
	many := []Author{}
	for i := range 50 {
		many = append(many, Author{Name: fmt.Sprint("n", i), Rating: float64(i) + 0.25})
	}
	must(db.CreateInBatches(many, 20).Error)
	var found Author
	must(db.Preload("Books", func(q *gorm.DB) *gorm.DB { return q.Order("title") }).Preload("Books.Labels", func(q *gorm.DB) *gorm.DB { return q.Order("name") }).First(&found, "name = ?", "Ann").Error)
	found.CreatedAt = time.Time{}
	show("found", found)
	var joined []Book
	must(db.Joins("Author").Where(`"Author".name = ?`, "Ann").Order("title").Find(&joined).Error)
	show("joined", len(joined), joined[0].Author.Name, joined[0].Author.Settings)
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"rating"})}).Create(&Author{Name: "Ann", Rating: 9}).Error)
	must(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Author{Name: "Ann"}).Error)
	var changed []Author
	must(db.Model(&changed).Clauses(clause.Returning{Columns: []clause.Column{{Name: "name"}, {Name: "rating"}}}).Where("name = ?", "Ann").Update("rating", gorm.Expr("rating + ?", 1)).Error)
	show("returning", changed[0].Name, changed[0].Rating)
	var groups []struct {
		Kind string
		N    int64
		Sum  float64
	}
	must(db.Model(&Author{}).Select("kind, count(*) n, sum(rating) sum").Group("kind").Having("count(*) > ?", 1).Scan(&groups).Error)
	show("groups", groups)
	must(db.Transaction(func(tx *gorm.DB) error {
		var row Author
		must(tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&row, "name = ?", "n1").Error)
		show("inner", tx.Transaction(func(inner *gorm.DB) error {
			must(inner.Unscoped().Where("title = ?", "Two").Delete(&Book{}).Error)
			return errors.New("undone")
		}).Error())
		return tx.Model(&row).Updates(map[string]any{"rating": 77}).Error
	}))
	var count int64
	must(db.Model(&Book{}).Count(&count).Error)
	show("books", count)
	rows, err := db.Model(&Author{}).Where("name like ?", "n1%").Order("id").Rows()
	must(err)
	n := 0
	for rows.Next() {
		must(db.ScanRows(rows, &found))
		n++
	}
	rows.Close()
	show("rows", n, found.Name)
	show("association", db.Model(&ann.Books[0]).Association("Labels").Count())
	must(db.Model(&ann.Books[0]).Association("Labels").Delete(&Label{"red"}))
	show("left", db.Model(&ann.Books[0]).Association("Labels").Count())
	show("duplicate", errors.Is(db.Create(&Author{Name: "Ann"}).Error, gorm.ErrDuplicatedKey), errors.Is(db.Create(&Book{Title: "x", AuthorID: 999}).Error, gorm.ErrForeignKeyViolated))
	show("check", db.Create(&Author{Name: "x", Rating: -1}).Error.Error())
	must(db.Delete(&Author{}, "name = ?", "n2").Error)
	var kept, all int64
	db.Model(&Author{}).Count(&kept)
	db.Unscoped().Model(&Author{}).Count(&all)
	show("soft", kept, all)

	seen.seen = nil
	must(db.AutoMigrate(&Later{}))
	show("later", seen.seen)
	columns(&Later{})
	seen.seen = nil
	must(db.AutoMigrate(&Later{}))
	show("later again", seen.seen)
	must(m.RenameColumn(&Later{}, "extra", "more"))
	must(m.AlterColumn(&Author{}, "Rating"))
	must(m.DropColumn(&Later{}, "more"))
	must(m.DropIndex(&Author{}, "busy"))
	must(m.CreateIndex(&Author{}, "busy"))
	must(m.RenameIndex(&Author{}, "busy", "busier"))
	must(m.DropConstraint(&Author{}, "rated"))
	must(m.CreateConstraint(&Author{}, "rated"))
	must(m.CreateView("dear", gorm.ViewOption{Query: db.Model(&Book{}).Where("pages > 1"), Replace: true}))
	must(m.DropView("dear"))
	must(m.RenameTable("labels", "tags"))
	must(m.DropTable("book_labels", "tags", &Book{}, &Author{}))
	tables, err = m.GetTables()
	must(err)
	show("tables left", len(tables))
}
