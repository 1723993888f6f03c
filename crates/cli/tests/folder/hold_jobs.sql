begin; lock table {schema}.jobs in access exclusive mode
