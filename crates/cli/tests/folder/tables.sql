select table_name::text from information_schema.tables where table_schema = '{schema}' and table_type = 'BASE TABLE'
