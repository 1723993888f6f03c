//! Owns how the project's values become parameters, one by one or as arrays, each with its type, so
//! that no statement needs a round trip to learn them.

use leasehold_core::fence::ClaimVersion;
use leasehold_core::{ClaimId, EventId, JobId, Json, RequestHash, Timestamp, WorkerId};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A value that can be a parameter.
pub(crate) trait Bind {
    /// What is sent.
    type Sent: ToSql + Sync + Send + 'static;
    const KIND: Type;
    const ARRAY: Type;
    fn sent(self) -> Self::Sent;
}

macro_rules! bind {
    ($($from:ty => $sent:ty, $kind:ident, $array:ident, |$value:ident| $change:expr;)*) => {$(
        impl Bind for $from {
            type Sent = $sent;
            const KIND: Type = Type::$kind;
            const ARRAY: Type = Type::$array;
            fn sent(self) -> $sent {
                let $value = self;
                $change
            }
        }
    )*};
}

bind! {
    bool => bool, BOOL, BOOL_ARRAY, |it| it;
    u8 => i16, INT2, INT2_ARRAY, |it| i16::from(it);
    i16 => i16, INT2, INT2_ARRAY, |it| it;
    u32 => i64, INT8, INT8_ARRAY, |it| i64::from(it);
    i64 => i64, INT8, INT8_ARRAY, |it| it;
    usize => i64, INT8, INT8_ARRAY, |it| i64::try_from(it).unwrap_or(i64::MAX);
    ClaimVersion => i64, INT8, INT8_ARRAY, |it| it.get();
    &str => String, TEXT, TEXT_ARRAY, |it| it.to_owned();
    String => String, TEXT, TEXT_ARRAY, |it| it;
    &Json => String, TEXT, TEXT_ARRAY, |it| it.as_str().to_owned();
    &[u8] => Vec<u8>, BYTEA, BYTEA_ARRAY, |it| it.to_vec();
    &RequestHash => Vec<u8>, BYTEA, BYTEA_ARRAY, |it| it.as_bytes().to_vec();
    Timestamp => std::time::SystemTime, TIMESTAMPTZ, TIMESTAMPTZ_ARRAY, |it| it.to_system_time();
    Uuid => Uuid, UUID, UUID_ARRAY, |it| it;
    JobId => Uuid, UUID, UUID_ARRAY, |it| it.as_uuid();
    EventId => Uuid, UUID, UUID_ARRAY, |it| it.as_uuid();
    ClaimId => Uuid, UUID, UUID_ARRAY, |it| it.as_uuid();
    WorkerId => Uuid, UUID, UUID_ARRAY, |it| it.as_uuid();
}

impl<T: Bind> Bind for Option<T> {
    type Sent = Option<T::Sent>;
    const KIND: Type = T::KIND;
    const ARRAY: Type = T::ARRAY;
    fn sent(self) -> Self::Sent {
        self.map(T::sent)
    }
}

/// The parameters of one statement, in their order.
#[derive(Debug, Default)]
pub(crate) struct Params {
    values: Vec<Box<dyn ToSql + Sync + Send>>,
    kinds: Vec<Type>,
}

impl Params {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds one value.
    pub(crate) fn one<T: Bind>(mut self, value: T) -> Self {
        self.values.push(Box::new(value.sent()));
        self.kinds.push(T::KIND);
        self
    }

    /// Adds an array.
    pub(crate) fn many<T: Bind>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.values.push(Box::new(values.into_iter().map(T::sent).collect::<Vec<_>>()));
        self.kinds.push(T::ARRAY);
        self
    }

    /// Adds an array that may be null as a whole.
    pub(crate) fn maybe_many<T: Bind>(
        mut self,
        values: Option<impl IntoIterator<Item = T>>,
    ) -> Self {
        let values = values.map(|values| values.into_iter().map(T::sent).collect::<Vec<_>>());
        self.values.push(Box::new(values));
        self.kinds.push(T::ARRAY);
        self
    }

    pub(crate) fn kinds(&self) -> &[Type] {
        &self.kinds
    }

    /// The values, for a statement that knows their types.
    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }

    /// The values with their types.
    pub(crate) fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        let values = self.values.iter().map(|value| &**value as &(dyn ToSql + Sync));
        values.zip(self.kinds.iter().cloned()).collect()
    }
}
