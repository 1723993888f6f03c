begin; create schema {schema}
