//! The types of atomic values that a text can name.

macro_rules! types {
    ($($(#[$meta:meta])* $type:ident = $name:literal,)*) => {
        /// A type of atomic values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Type {
            $($(#[$meta])* $type,)*
        }

        impl Type {
            /// All of them, by name.
            pub const ALL: &[Type] = &[$(Type::$type,)*];

            /// Its name in the namespace of XML Schema.
            pub fn name(self) -> &'static str {
                match self {
                    $(Type::$type => $name,)*
                }
            }
        }
    };
}

types! {
    /// `xs:boolean`
    Boolean = "boolean",
    /// `xs:date`
    Date = "date",
    /// `xs:dateTime`
    DateTime = "dateTime",
    /// `xs:dayTimeDuration`
    DayTimeDuration = "dayTimeDuration",
    /// `xs:decimal`, with the precision of a double.
    Decimal = "decimal",
    /// `xs:double`
    Double = "double",
    /// `xs:integer`
    Integer = "integer",
    /// `xs:string`
    String = "string",
    /// `xs:time`
    Time = "time",
    /// `xs:yearMonthDuration`
    YearMonthDuration = "yearMonthDuration",
}

impl Type {
    /// Those of dates, times and durations.
    pub(crate) const MOMENTS: [Type; 5] =
        [Type::Date, Type::DateTime, Type::Time, Type::DayTimeDuration, Type::YearMonthDuration];

    /// The type of a name.
    pub(crate) fn of_name(name: &str) -> Option<Type> {
        Type::ALL.iter().copied().find(|it| it.name() == name)
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
