//! The types of atomic values that a text can name.

/// A type of atomic values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `xs:boolean`
    Boolean,
    /// `xs:date`
    Date,
    /// `xs:dateTime`
    DateTime,
    /// `xs:dayTimeDuration`
    DayTimeDuration,
    /// `xs:decimal`, with the precision of a double.
    Decimal,
    /// `xs:double`
    Double,
    /// `xs:integer`
    Integer,
    /// `xs:string`
    String,
    /// `xs:time`
    Time,
    /// `xs:yearMonthDuration`
    YearMonthDuration,
}

impl Type {
    /// All of them, by name.
    pub const ALL: [Type; 10] = {
        use Type::*;
        [
            Boolean,
            Date,
            DateTime,
            DayTimeDuration,
            Decimal,
            Double,
            Integer,
            String,
            Time,
            YearMonthDuration,
        ]
    };

    /// Those of dates, times and durations.
    pub(crate) const MOMENTS: [Type; 5] =
        [Type::Date, Type::DateTime, Type::Time, Type::DayTimeDuration, Type::YearMonthDuration];

    /// Its name in the namespace of XML Schema.
    pub fn name(self) -> &'static str {
        match self {
            Type::Boolean => "boolean",
            Type::Date => "date",
            Type::DateTime => "dateTime",
            Type::DayTimeDuration => "dayTimeDuration",
            Type::Decimal => "decimal",
            Type::Double => "double",
            Type::Integer => "integer",
            Type::String => "string",
            Type::Time => "time",
            Type::YearMonthDuration => "yearMonthDuration",
        }
    }

    /// The type of a name.
    pub(crate) fn of_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whether its values are dates, times or durations.
    pub(crate) fn is_moment(self) -> bool {
        Type::MOMENTS.contains(&self)
    }

    /// Whether its values are durations.
    pub(crate) fn is_duration(self) -> bool {
        matches!(self, Type::DayTimeDuration | Type::YearMonthDuration)
    }

    /// Whether its values are numbers.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Type::Decimal | Type::Double | Type::Integer)
    }
}
